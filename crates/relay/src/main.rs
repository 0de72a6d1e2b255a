//! relay: the coordination bus for coding agents that share a codebase.

/// A place between two steps where a test kills the process. A release build has none.
macro_rules! point {
    ($name:literal) => {
        #[cfg(feature = "test-doors")]
        fail::fail_point!($name, |_| std::process::abort());
    };
}

mod app;
mod cli;
mod clock;
mod closed;
mod config;
mod demo;
mod doctor;
mod environment;
mod guard;
mod hook;
mod human;
mod init;
mod installation;
mod output;
mod page;
mod process;
mod progress;
mod remote;
mod render;
mod served;
mod there;
mod watch;

fn main() -> std::process::ExitCode {
    #[cfg(feature = "test-doors")]
    let _failpoints = fail::FailScenario::setup();
    app::main()
}
