//! All `unsafe` of the project lives here.
