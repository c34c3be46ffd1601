//! What boxes may reach: read from files, merged from layers, compared with requests. No I/O.

mod model;

pub use model::*;
