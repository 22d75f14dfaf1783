//! What is done with which application of which client.
