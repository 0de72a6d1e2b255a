//! `relay demo`: the main job, played for real by processes of this same binary on a throwaway repository.
//!
//! Nothing that is narrated is known beforehand: every line is filled from the answer of a process, and an answer that
//! lacks what the line quotes, or differs from what the play expects, ends the demo with a failure.

mod play;
mod reply;
mod second;
mod stage;

use relay_core::playbook::Setting;
use relay_core::store::Result;
use relay_core::verbs::recover;

use crate::app::App;
use stage::Stage;

/// What shells report for a command that was interrupted.
const INTERRUPTED: u8 = 130;

pub fn run(app: &App) -> u8 {
    let mut interrupted = false;
    match whole(app, &mut interrupted) {
        Ok(answer) => app.answer("demo", Ok(answer)),
        Err(_) if interrupted => INTERRUPTED,
        // The caller's own project has nothing to do with it, so no step names it.
        Err(refusal) => app.fail(&recover::failure_outside("demo", &refusal, &Setting::default())),
    }
}

fn whole(app: &App, interrupted: &mut bool) -> Result<(serde_json::Value, String)> {
    let mut stage = Stage::set(app.output)?;
    let played = play::play(&mut stage);
    *interrupted = stage.is_interrupted();
    played?;
    let steps = stage.strike()?;
    let text = format!(
        "\n{} commands, each a process of its own, and nothing is left of them. Now yours: relay init\n",
        steps.len()
    );
    Ok((serde_json::json!({"steps": steps}), text))
}
