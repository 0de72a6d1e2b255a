//! Playbooks: for each error class the ordered steps that lead out of it, with the real values filled in.
//!
//! The files in `playbooks/` are the program: text → steps → run. A step is an argv and the same thing as a tool call, built
//! only from ids and validated names, never from message text, and never passed to a shell. What must be true afterwards
//! stands in the file too, and is looked at.

mod condition;
mod file;
mod fill;
mod library;
mod step;
mod surface;
mod values;

pub use condition::{Condition, State};
pub use file::{Fails, Playbook, Template, Who};
pub use library::playbook;
pub use step::{Escalation, Setting, Step, Taken, lacks, outline, retries, steps};
pub use surface::{COMMANDS, COMMON, takes};
pub use values::given;
