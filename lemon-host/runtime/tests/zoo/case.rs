//! One row of the table: a fault, how the host is set up for it, and what has to come of it.

use std::time::Duration;

use lemon_host::{Class, Limits, Millis, PluginSpec, Timeouts};

use crate::cage::{self, Cage};

/// A case that has no check yet.
pub(crate) struct Setup {
    pub(crate) name: String,
    pub(crate) fault: Option<&'static str>,
    pub(crate) spec: PluginSpec,
    pub(crate) limits: Limits,
    pub(crate) timeouts: Timeouts,
    /// Whether the lines to and from the faulty plugin are kept.
    pub(crate) traced: bool,
}

/// A test.
pub(crate) struct Case {
    name: String,
    fault: Option<&'static str>,
    run: Box<dyn FnOnce() + Send>,
}

/// The name under which the host knows the faulty plugin.
pub(crate) const VICTIM: &str = "victim";

/// A case of a fault, which is the program's switch and, after a space, its ARG. Without the packages that a machine has
/// for Python (`-S`), as they are not needed and take a third of the start.
pub(crate) fn fault(fault_and_arg: &'static str) -> Setup {
    let mut words = vec!["python3".to_owned(), "-S".to_owned(), cage::root(cage::PROGRAM)];
    words.extend(fault_and_arg.split(' ').map(str::to_owned));
    let fault = fault_and_arg.split(' ').next();
    Setup { fault, ..program(fault_and_arg, words) }
}

/// A case of a program that is none of the faults.
pub(crate) fn program(name: &str, command: impl IntoIterator<Item = String>) -> Setup {
    let spec = PluginSpec::new(VICTIM.parse().unwrap(), Class::Extension, command);
    Setup { name: name.to_owned(), fault: None, spec, limits: Limits::default(), timeouts: quick(), traced: false }
}

/// Times that need not be waited for, where a case is not about them.
fn quick() -> Timeouts {
    let mut timeouts = Timeouts::default();
    timeouts.start_ms = Millis::new(30_000);
    timeouts.call_ms = Millis::new(30_000);
    timeouts.linger_ms = Millis::new(1000);
    timeouts.list_debounce_ms = Millis::new(50);
    timeouts.shutdown_ms = Millis::new(500);
    timeouts.eof_ms = Millis::new(1000);
    timeouts.term_ms = Millis::new(500);
    timeouts
}

impl Setup {
    /// Tells cases of one fault apart.
    pub(crate) fn named(mut self, suffix: &str) -> Self {
        self.name = format!("{}, {suffix}", self.name);
        self
    }

    pub(crate) fn spec(mut self, change: impl FnOnce(&mut PluginSpec)) -> Self {
        change(&mut self.spec);
        self
    }

    pub(crate) fn limits(mut self, change: impl FnOnce(&mut Limits)) -> Self {
        change(&mut self.limits);
        self
    }

    pub(crate) fn timeouts(mut self, change: impl FnOnce(&mut Timeouts)) -> Self {
        change(&mut self.timeouts);
        self
    }

    /// Gives the start so many milliseconds.
    pub(crate) fn start_within(self, milliseconds: u64) -> Self {
        self.spec(|spec| spec.start_timeout = Some(Duration::from_millis(milliseconds)))
    }

    /// Gives the plugin a value of its configuration.
    pub(crate) fn configured(self, key: &str, value: &str) -> Self {
        self.spec(|spec| {
            spec.config.insert(key.to_owned(), value.into());
        })
    }

    pub(crate) fn traced(mut self) -> Self {
        self.traced = true;
        self
    }

    /// What has to be true when the fault has shown itself.
    pub(crate) fn then(self, check: impl AsyncFnOnce(&mut Cage) + Send + 'static) -> Case {
        let (name, fault) = (self.name.clone(), self.fault);
        Case { name, fault, run: Box::new(move || cage::run(self, check)) }
    }

    /// The start fails, for the reason that has all the parts; trying again makes sense or not.
    pub(crate) fn never_starts(self, end: NotStarted, parts: &'static [&'static str]) -> Case {
        self.then(async move |cage| {
            let error = cage.start_error();
            for part in parts {
                assert!(error.contains(part), "{error:?} lacks {part:?}");
            }
            cage.rests_as(end).await;
        })
    }

    /// All goes well, and what the plugin wrote that is none was counted as these kinds, so often at the least.
    pub(crate) fn works_with_noise(self, noise: &'static [(&'static str, u64)]) -> Case {
        self.then(async move |cage| {
            assert_eq!(cage.says("echo", r#"{"text":"ok"}"#).await, "ok");
            for (kind, count) in noise {
                cage.until(kind, |cage| cage.noise(kind) >= *count).await;
            }
            cage.works().await;
            assert_eq!(noise.is_empty(), cage.process().noise.total() == 0, "{:?}", cage.process().noise);
        })
    }

    /// A call of echo fails for the reason that has all the parts, at once or at its deadline of a second; later calls
    /// work, in the same process.
    pub(crate) fn call_fails(self, parts: &'static [&'static str]) -> Case {
        self.then(async move |cage| {
            let error = cage.echo_within(1000).await.unwrap_err().to_string();
            for part in parts {
                assert!(error.contains(part), "{error:?} lacks {part:?}");
            }
            cage.works().await;
        })
    }

    /// A call of echo fails as the process has come to its end, which the reason tells; the plugin comes back.
    pub(crate) fn call_costs_the_process(self, parts: &'static [&'static str]) -> Case {
        self.then(async move |cage| {
            let error = cage.echo().await.unwrap_err().to_string();
            for part in parts {
                assert!(error.contains(part), "{error:?} lacks {part:?}");
            }
            cage.comes_back().await;
        })
    }
}

/// What a plugin is that did not start.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum NotStarted {
    /// It is tried again.
    Backoff,
    /// Trying again can't help.
    Failed,
}

impl Case {
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn fault(&self) -> Option<&str> {
        self.fault
    }

    /// # Panics
    /// If the host does not do what it must.
    pub(crate) fn run(self) {
        (self.run)();
    }
}
