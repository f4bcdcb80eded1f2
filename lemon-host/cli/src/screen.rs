//! A terminal in which somebody types while lines are told.
//!
//! While a line is edited, the editor alone may write to the terminal: it takes what is told, shows it above the line,
//! and draws the line again. Between two lines everything goes to the terminal directly. The moments in which one
//! becomes the other are waited for, or a line would end up in the middle of the prompt.

use std::fmt;
use std::io;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Shows a text above the line that is being edited.
pub(crate) type Above = Box<dyn FnMut(String) -> io::Result<()> + Send>;

/// The terminal.
#[derive(Default)]
pub(crate) struct Screen {
    state: Mutex<State>,
    changed: Condvar,
    above: Mutex<Option<Above>>,
}

/// Who has the terminal.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum State {
    /// Whoever writes.
    #[default]
    Free,
    /// Nobody, for a moment: an editor begins or ends.
    Changing,
    /// The editor.
    Editing,
}

impl Screen {
    /// Has an editor from now on.
    pub(crate) fn edited_by(&self, above: Above) {
        *self.above() = Some(above);
    }

    /// Has no editor any more, whatever that one does.
    pub(crate) fn release(&self) {
        self.set(State::Free);
        // Not waited for: it may be held by somebody who waits for the editor.
        if let Ok(mut above) = self.above.try_lock() {
            *above = None;
        }
    }

    pub(crate) fn set(&self, state: State) {
        *self.state() = state;
        self.changed.notify_all();
    }

    /// The editor has begun.
    pub(crate) fn begin_editing(&self) {
        let mut state = self.state();
        if *state == State::Changing {
            *state = State::Editing;
            drop(state);
            self.changed.notify_all();
        }
    }

    /// Whether a line is being edited.
    pub(crate) fn is_editing(&self) -> bool {
        *self.state() != State::Free
    }

    /// Writes to the terminal in the way that is right at the moment, and elsewhere with `directly`.
    pub(crate) fn write(
        &self,
        is_terminal: bool,
        bytes: &[u8],
        directly: impl FnOnce(&[u8]) -> io::Result<()>,
    ) -> io::Result<()> {
        if !is_terminal || bytes.is_empty() {
            return directly(bytes);
        }
        let mut state = self.state();
        while *state == State::Changing {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        let is_edited = *state == State::Editing;
        // What is shown above waits for the editor, which may be waiting for the state.
        drop(state);
        if is_edited && let Some(above) = &mut *self.above() {
            return above(String::from_utf8_lossy(bytes).into_owned());
        }
        directly(bytes)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn above(&self) -> MutexGuard<'_, Option<Above>> {
        self.above.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Screen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Screen").field(&*self.state()).finish()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, mpsc};

    use super::*;

    fn screen() -> (Arc<Screen>, mpsc::Receiver<String>) {
        let (screen, (sender, above)) = (Arc::<Screen>::default(), mpsc::channel());
        screen.edited_by(Box::new(move |text| sender.send(text).map_err(io::Error::other)));
        (screen, above)
    }

    /// Whether a text went to the terminal directly.
    fn is_direct(screen: &Screen, is_terminal: bool) -> bool {
        let mut direct = false;
        let note = |_: &[u8]| {
            direct = true;
            Ok(())
        };
        screen.write(is_terminal, b"text", note).unwrap();
        direct
    }

    #[test]
    fn the_editor_shows_what_is_told_while_it_has_the_terminal() {
        let (screen, above) = screen();
        assert!(is_direct(&screen, true));
        screen.begin_editing();
        assert!(is_direct(&screen, true), "no editor was about to begin");
        screen.set(State::Changing);
        screen.begin_editing();
        assert!(!is_direct(&screen, true) && above.try_recv().unwrap() == "text");
        assert!(is_direct(&screen, false), "a file is not the terminal");
        screen.release();
        assert!(is_direct(&screen, true));
    }

    #[test]
    fn what_is_told_while_the_editor_begins_waits_until_it_has() {
        let (screen, above) = screen();
        screen.set(State::Changing);
        let teller = screen.clone();
        let told = std::thread::spawn(move || is_direct(&teller, true));
        screen.begin_editing();
        assert!(!told.join().unwrap());
        assert_eq!(above.try_recv().unwrap(), "text");
    }
}
