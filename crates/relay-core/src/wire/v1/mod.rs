//! Version 1: one envelope for every answer, and the shapes inside it.

mod answer;
mod shapes;

pub use answer::{Answer, Failed, Failure, Signal, SignalCode};
pub use shapes::*;
