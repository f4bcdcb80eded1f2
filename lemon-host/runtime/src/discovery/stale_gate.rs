//! What stands in for a plugin that may stop calls and does not run.

use std::future::ready;
use std::pin::Pin;

use super::extensions::{Held, HeldBecause};
use crate::report::PluginText;
use crate::seams::{CallRequest, Gate, Verdict};

/// Blocks every call, as a plugin that the user trusted with stopping calls is not what it was, or not there.
///
/// Without it, changing that plugin would be a way around it. The user ends this by trusting the plugin again, by
/// trusting it no longer, or by disabling it in their own config.
#[derive(Debug, Clone)]
pub struct StaleGate {
    reason: String,
}

impl StaleGate {
    /// One for all that are held and may stop calls; none if none of them may. Those that the user's config disables
    /// are not to be among them.
    pub fn of<'a>(held: impl IntoIterator<Item = &'a Held>) -> Option<Self> {
        let reasons: Vec<String> = held.into_iter().filter(|held| held.gate).map(reason).collect();
        (!reasons.is_empty()).then(|| Self { reason: reasons.join("; ") })
    }

    /// Which plugins those are, and what to do.
    pub fn reason(&self) -> &str {
        &self.reason
    }
}

fn reason(held: &Held) -> String {
    let Held { name, path, why, .. } = held;
    let path = PluginText::new(path.to_string_lossy());
    let state = match why {
        HeldBecause::Gone => format!("is not at {} any more", path.capped(200)),
        HeldBecause::Unfit(_) => "can't be run".to_owned(),
        _ => "has changed since it was trusted".to_owned(),
    };
    format!(
        "plugin {name} may stop calls and {state}; until that is settled every call is blocked: `lemon plugin trust \
         {name}` shows what it is now, `lemon plugin untrust {name}` goes on without it"
    )
}

impl Gate for StaleGate {
    fn name(&self) -> &str {
        "trust"
    }

    fn review<'a>(&'a self, _: CallRequest<'a>) -> Pin<Box<dyn Future<Output = Verdict> + Send + 'a>> {
        Box::pin(ready(Verdict::block(self.reason.clone())))
    }
}
