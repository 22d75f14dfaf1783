//! Two ends over a line that loses, doubles, delays and reorders.
