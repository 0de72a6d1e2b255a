use crate::app::App;
pub fn run(_app: &App) -> u8 {
    0
}
