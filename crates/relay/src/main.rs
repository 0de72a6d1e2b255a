//! relay: the coordination bus for coding agents that share a codebase.

mod app;
mod cli;
mod clock;
mod config;
mod demo;
mod environment;
mod human;
mod output;
mod process;
mod progress;
mod render;

fn main() -> std::process::ExitCode {
    #[cfg(feature = "test-doors")]
    let _failpoints = fail::FailScenario::setup();
    app::main()
}
