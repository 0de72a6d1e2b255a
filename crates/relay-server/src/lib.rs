//! Everything of relay that listens: MCP over stdio and HTTP. Async stops at this crate's border.
//!
//! A front turns what it hears into an [`Ask`]; the [`desk`] answers it from the store, in the one shape that every answer
//! has; the front writes that out. What relay's own program lends to it, its words and its processes, is in [`front`].

pub mod ask;
mod descriptor;
pub mod desk;
pub mod front;
pub mod http;
pub mod mcp;
mod quota;
mod runtime;
pub mod stdio;
mod stop;
pub mod web;

pub use ask::{Answer, Ask, Body, Origin, Said};
pub use desk::Desk;
pub use front::{Effect, Front, Speech, Tool};
