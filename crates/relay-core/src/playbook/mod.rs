//! Playbooks: for each error class the ordered steps that lead out of it, with the real values filled in.
//!
//! The files in `playbooks/` are the program: text → steps. A step is an argv and the same thing as a tool call, built
//! only from ids and validated names, never from message text, and never passed to a shell.

mod library;
mod step;

pub use library::{Playbook, Template, playbook};
pub use step::{Setting, Step, outline, steps};
