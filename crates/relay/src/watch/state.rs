//! What the keys have chosen.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

/// The parts of the screen, in the order in which Tab goes through them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pane {
    Decide,
    Agents,
    Claims,
    Owed,
}

impl Pane {
    pub const ALL: [Pane; 4] = [Pane::Decide, Pane::Agents, Pane::Claims, Pane::Owed];

    pub fn name(self) -> &'static str {
        match self {
            Pane::Decide => "To decide",
            Pane::Agents => "Agents",
            Pane::Claims => "Claims",
            Pane::Owed => "Owed and awaited",
        }
    }
}

/// What a key asks of the program; what it asks of the screen is done with the next drawing.
#[derive(Debug, PartialEq, Eq)]
pub enum Act {
    Nothing,
    Look,
    Suspend,
    Quit,
}

pub struct State {
    /// Where the keys go.
    pub pane: Pane,
    /// The first line of each pane that is shown; drawing keeps it within what there is.
    pub scroll: [usize; 4],
    /// How many lines the pane has room for, as it was drawn last.
    pub room: usize,
    pub help: bool,
    pub colour: bool,
    /// Why the last look failed.
    pub trouble: Option<String>,
}

impl State {
    pub fn new(colour: bool, pane: Pane) -> Self {
        State { pane, scroll: [0; 4], room: 1, help: false, colour, trouble: None }
    }

    pub fn press(&mut self, key: KeyEvent) -> Act {
        if key.modifiers.contains(KeyModifiers::CONTROL) {
            return match key.code {
                KeyCode::Char('c') => Act::Quit,
                KeyCode::Char('z') => Act::Suspend,
                _ => Act::Nothing,
            };
        }
        match key.code {
            KeyCode::Char('?') => self.help = !self.help,
            KeyCode::Esc if self.help => self.help = false,
            KeyCode::Char('q') | KeyCode::Esc => return Act::Quit,
            KeyCode::Char('r') => return Act::Look,
            KeyCode::Tab => self.turn(1),
            KeyCode::BackTab => self.turn(Pane::ALL.len() - 1),
            KeyCode::Down | KeyCode::Char('j') => self.down(1),
            KeyCode::Up | KeyCode::Char('k') => self.up(1),
            KeyCode::PageDown => self.down(self.room),
            KeyCode::PageUp => self.up(self.room),
            KeyCode::Home => self.up(usize::MAX),
            KeyCode::End => self.down(usize::MAX),
            _ => {}
        }
        Act::Nothing
    }

    fn turn(&mut self, by: usize) {
        self.pane = Pane::ALL[(self.pane as usize + by) % Pane::ALL.len()];
    }

    fn down(&mut self, by: usize) {
        let first = &mut self.scroll[self.pane as usize];
        *first = first.saturating_add(by);
    }

    fn up(&mut self, by: usize) {
        let first = &mut self.scroll[self.pane as usize];
        *first = first.saturating_sub(by);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn press(state: &mut State, code: KeyCode) -> Act {
        state.press(KeyEvent::new(code, KeyModifiers::NONE))
    }

    #[test]
    fn keys_leave_look_and_put_aside() {
        let check = |code: KeyCode, modifiers: KeyModifiers, expected: Act| {
            assert_eq!(State::new(true, Pane::Agents).press(KeyEvent::new(code, modifiers)), expected, "{code:?}");
        };
        check(KeyCode::Char('q'), KeyModifiers::NONE, Act::Quit);
        check(KeyCode::Esc, KeyModifiers::NONE, Act::Quit);
        check(KeyCode::Char('c'), KeyModifiers::CONTROL, Act::Quit);
        check(KeyCode::Char('z'), KeyModifiers::CONTROL, Act::Suspend);
        check(KeyCode::Char('r'), KeyModifiers::NONE, Act::Look);
        check(KeyCode::Char('c'), KeyModifiers::NONE, Act::Nothing);
        check(KeyCode::Char('x'), KeyModifiers::NONE, Act::Nothing);
    }

    #[test]
    fn tab_goes_round_and_each_pane_scrolls_for_itself() {
        let mut state = State::new(true, Pane::Agents);
        state.room = 10;
        press(&mut state, KeyCode::PageDown);
        press(&mut state, KeyCode::Char('j'));
        press(&mut state, KeyCode::Up);
        press(&mut state, KeyCode::Tab);
        assert_eq!(state.pane, Pane::Claims);
        press(&mut state, KeyCode::Down);
        press(&mut state, KeyCode::Char('k'));
        press(&mut state, KeyCode::Char('k'));
        assert_eq!(state.scroll, [0, 10, 0, 0]);
        for pane in [Pane::Owed, Pane::Decide, Pane::Agents] {
            press(&mut state, KeyCode::Tab);
            assert_eq!(state.pane, pane);
        }
        press(&mut state, KeyCode::BackTab);
        press(&mut state, KeyCode::BackTab);
        assert_eq!(state.pane, Pane::Owed);
        press(&mut state, KeyCode::End);
        press(&mut state, KeyCode::PageDown);
        press(&mut state, KeyCode::Home);
        assert_eq!(state.scroll, [0, 10, 0, 0]);
    }

    #[test]
    fn the_keys_are_told_and_go_away_again() {
        let mut state = State::new(true, Pane::Agents);
        press(&mut state, KeyCode::Char('?'));
        assert!(state.help);
        assert_eq!((press(&mut state, KeyCode::Esc), state.help), (Act::Nothing, false));
    }
}
