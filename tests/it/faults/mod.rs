//! Nothing acknowledged is lost, whatever fails: system calls, processes, the power, the disk, the clock, git.

mod calls;
mod cuts;
mod doctored;
mod doubt;
mod erasing;
mod kills;
mod letters;
mod oracle;
mod senders;
mod served;
pub mod steps;
mod troubles;
