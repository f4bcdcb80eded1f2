//! Tools that can be listed without a process: those that a plugin offered when it last ran, or that its manifest
//! declares.
//!
//! What a plugin offered is remembered under a hash of all that its list may depend on, its code first of all, so it is
//! only known of plugins whose code can be seen: a folder with a manifest, or the copy of what a user trusted. Lists are
//! hostile input here as anywhere; a file that can't be read, or is none of this user's, counts as not there.

mod cache;
mod key;

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;

use lemon_protocol::manifest::Manifest;
use serde::Serialize;
use serde_json::value::to_raw_value;

use self::cache::{OfferCache, Record};
use self::key::Key;
use super::drift;
use super::live::{Quarantined, ToolList};
use super::spec::{Class, PluginSpec};
use crate::host::Core;
use crate::report::PluginText;

/// Where the tools of a plugin were listed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Listed {
    /// By its process.
    #[default]
    Live,
    /// By an earlier process that was the same in all that counts.
    Cache,
    /// In its manifest.
    Manifest,
}

/// The tools of a plugin that need not run before one of them is called; none if it is to be started.
pub(super) async fn known(spec: &Arc<PluginSpec>, cwd: &Path, core: &Arc<Core>) -> Option<ToolList> {
    let record = recall(spec, cwd, core).await;
    let manifest = spec.manifest.as_ref().map(|file| &file.manifest);
    if must_run(spec, manifest, record.is_some()) {
        return None;
    }
    let (mut list, entries) = match record {
        Some(record) => (ToolList { listed: Listed::Cache, ..record.refused() }, record.tools),
        None => {
            let declared = manifest?.tools.as_ref().filter(|_| !manifest.is_some_and(|it| it.tools_depend_on_cwd))?;
            let entries = declared.iter().map(to_raw_value).collect::<Result<_, _>>().ok()?;
            (ToolList { listed: Listed::Manifest, ..ToolList::default() }, entries)
        }
    };
    let mut names = HashSet::new();
    for entry in entries.into_iter().take(core.limits.tools) {
        list.take(entry, &mut names, &core.limits, |_, _| {}).await;
    }
    if let Some(manifest) = &spec.manifest {
        drift::hold_tools(manifest, &mut list);
    }
    Some(list)
}

/// Whether a plugin has to run although nobody has called it: nothing is known of it, it may stop calls, or it takes
/// part in the begin of a session.
fn must_run(spec: &PluginSpec, manifest: Option<&Manifest>, is_remembered: bool) -> bool {
    let hooks = manifest.and_then(|manifest| manifest.hooks.as_ref());
    let takes_part = hooks.is_some_and(|hooks| hooks.iter().any(|hook| hook.event.starts_with("session_")));
    takes_part || may_gate(spec, manifest, is_remembered)
}

/// Whether calls of tools may be stopped by a plugin, as far as is known without a process. No call is made before such
/// a plugin was given the chance to start.
fn may_gate(spec: &PluginSpec, manifest: Option<&Manifest>, is_remembered: bool) -> bool {
    match manifest.and_then(|manifest| manifest.hooks.as_ref()) {
        // MCP has no hooks.
        _ if spec.class == Class::Mcp => false,
        Some(hooks) => hooks.iter().any(|hook| hook.is_gate()),
        // It has not said that it has none, but it was seen to have none.
        None => !is_remembered,
    }
}

async fn recall(spec: &Arc<PluginSpec>, cwd: &Path, core: &Arc<Core>) -> Option<Record> {
    let cache = OfferCache::of(core).filter(|_| key::is_code_known(spec))?;
    let (spec, cwd, core) = (spec.clone(), cwd.to_owned(), core.clone());
    blocking(move || cache.read(&spec.name, &Key::of(&spec, &cwd, &core, &cache)?)).await
}

/// What a plugin is made of when it is started, under which its offer will be remembered.
pub(crate) struct Pending {
    cache: OfferCache,
    key: Key,
}

/// Takes down what a plugin is made of. It has to be there before the plugin has read anything of it.
pub(super) async fn starting(spec: &Arc<PluginSpec>, cwd: &Path, core: &Arc<Core>) -> Option<Pending> {
    let cache = OfferCache::of(core).filter(|_| key::is_code_known(spec))?;
    let (spec, cwd, core) = (spec.clone(), cwd.to_owned(), core.clone());
    blocking(move || {
        let key = Key::of(&spec, &cwd, &core, &cache)?;
        Some(Pending { cache, key })
    })
    .await
}

impl Pending {
    /// Remembers what the plugin offered, unless it has become another one since it was started.
    pub(super) async fn remember(self, spec: &Arc<PluginSpec>, cwd: &Path, core: &Arc<Core>, list: ToolList) {
        let Self { cache, key } = self;
        let (spec, cwd, core) = (spec.clone(), cwd.to_owned(), core.clone());
        blocking(move || {
            let is_same = Key::of(&spec, &cwd, &core, &cache)? == key;
            is_same.then(|| cache.write(&spec.name, &key, &Record::of(&key, &list)))
        })
        .await;
    }
}

/// Files are looked at on another thread; if that breaks down, nothing is known.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> Option<T> + Send + 'static) -> Option<T> {
    tokio::task::spawn_blocking(work).await.ok().flatten()
}

impl Record {
    fn of(key: &Key, list: &ToolList) -> Self {
        Self {
            key: key.to_string(),
            tools: list.tools.iter().filter_map(|tool| to_raw_value(&**tool).ok()).collect(),
            refused: list
                .quarantined
                .iter()
                .map(|refused| (refused.tool.raw().to_owned(), refused.reason.raw().to_owned()))
                .collect(),
        }
    }

    /// The list without its tools.
    fn refused(&self) -> ToolList {
        let text = |text: &String| PluginText::new(text.as_str());
        let quarantined =
            self.refused.iter().map(|(tool, reason)| Quarantined { tool: text(tool), reason: text(reason) });
        ToolList { quarantined: quarantined.collect(), ..ToolList::default() }
    }
}
