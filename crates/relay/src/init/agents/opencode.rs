//! OpenCode: a plugin instead of hooks.

use jsonc_parser::json;

use super::{Edit, Json, Setting, Target, Traces, Whole, Wish};
use crate::environment;
use crate::init::place::Place;

/// Where its settings may be in a project, in the order in which they are looked for.
const SETTINGS: [&str; 4] = ["opencode.jsonc", "opencode.json", ".opencode/opencode.jsonc", ".opencode/opencode.json"];

pub fn traces() -> Traces {
    let kept = vec![environment::config_folder().join("opencode")];
    Traces { programs: &["opencode"], kept, in_project: &[".opencode", "opencode.json", "opencode.jsonc"] }
}

pub fn targets(setting: &Setting<'_>) -> Vec<Target> {
    let place = setting.place;
    let settings = SETTINGS.into_iter().find(|path| place.root.join(path).exists()).unwrap_or("opencode.json");
    let wishes = vec![Wish::Member { under: vec!["mcp"], name: "relay", value: entry(place) }];
    vec![Target::json(settings, wishes), plugin(place), Target::instructions(), Target::skill()]
}

fn entry(place: &Place) -> Json {
    let mut members = vec![
        ("type".to_owned(), "local".into()),
        ("command".to_owned(), Json::from(vec![place.relay.as_str(), "mcp"])),
        ("enabled".to_owned(), true.into()),
    ];
    members.extend(place.unusual_home().map(|home| ("environment".to_owned(), json!({"RELAY_HOME": home}))));
    Json::Object(members)
}

fn plugin(place: &Place) -> Target {
    let edit = Edit::Whole(Whole::script(&plugin_for(&place.relay)));
    Target { path: ".opencode/plugins/relay.js".to_owned(), edit }
}

/// The plugin that calls this program.
pub fn plugin_for(program: &str) -> String {
    let program = serde_json::Value::from(program).to_string();
    include_str!("../texts/opencode.js").replace("\"RELAY_PROGRAM\"", &program)
}

pub fn next() -> Vec<String> {
    vec!["start OpenCode anew: it loads plugins and servers when it starts".to_owned()]
}
