//! Nothing acknowledged is lost, whatever fails: system calls, processes, the power, the disk, the clock, git.

mod doctored;
mod oracle;
