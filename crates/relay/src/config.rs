//! `config.toml` in `$RELAY_HOME`: other limits than the protocol's.

use std::path::Path;

use relay_core::domain::limits::Limits;
use relay_core::error::Code;
use relay_core::store::Result;
use serde::Deserialize;

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Config {
    limits: Limits,
}

pub fn limits(home: &Path) -> Result<Limits> {
    let path = home.join("config.toml");
    let text = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        Err(_) => return Ok(Limits::default()),
    };
    let config: Config = toml::from_str(&text)
        .map_err(|fault| Code::InputInvalid.refuse(format!("{}: {}", path.display(), fault.to_string().trim())))?;
    Ok(config.limits)
}
