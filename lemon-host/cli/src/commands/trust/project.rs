//! `lemon plugin trust --project`: the config of a project, and the extensions in its folder.

use lemon_host::trust::{Grant, Sha, TrustStore};
use lemon_host::{Config, PlaceKind, Project, entry_subject};

use super::{Outcome, Trusting, no_project, path, shown};
use crate::config::extensions::{project_config, with_source};
use crate::config::of_config;
use crate::errors::Failure;
use crate::exit::Exit;

impl Trusting<'_> {
    /// The config, then each extension.
    pub(super) async fn project(&self) -> Result<Exit, Failure> {
        let mut outcomes = vec![self.config().await?];
        // With a config that is not agreed to, the extensions may be, each by its name.
        if outcomes == [Outcome::Trusted] {
            let of_project = |found: &&lemon_host::Found| found.place.kind == PlaceKind::Project;
            for found in self.setup.disk.found.iter().filter(of_project) {
                outcomes.push(self.plugin(found.clone()).await?);
            }
        }
        self.end(&outcomes)
    }

    /// Shows the config of the project, asks, and trusts it with the plugins that it names.
    pub(super) async fn config(&self) -> Result<Outcome, Failure> {
        let project = self.setup.disk.project.as_ref().ok_or_else(no_project)?;
        if project.folder.to_str().is_none() {
            let what = format!("the project {} can't be trusted", path(&project.folder));
            return Err(Failure::new(Exit::Usage, what)
                .why("its path is not UTF-8")
                .hint("give the folder another name"));
        }
        let file = project.config();
        let text = project_config(project).map_err(|error| of_config(&error))?;
        self.output.report(&format!("the project {}\n", path(&project.folder))).await?;
        let config = match &text {
            Some(text) => Some(Config::parse_project(text, &file).map_err(|error| of_config(&error))?),
            None => None,
        };
        let subjects = match &config {
            Some(config) => {
                self.output.report(&shown::text(text.as_deref().unwrap_or_default())).await?;
                self.entries(project, config).await?
            }
            None => {
                self.output.report("  has no config\n").await?;
                Vec::new()
            }
        };
        if !self.agrees("Trust this project?").await? {
            return Ok(Outcome::Left);
        }
        let hash = text.map(|text| Sha::of(text.as_bytes()));
        let edit = TrustStore::edit(self.home, |store| {
            store.untrust(|record| record.path == file && record.entry.is_some());
            subjects.into_iter().for_each(|(name, subject)| store.trust(name, subject, Grant::default()));
            store.trust_project(&project.folder, hash);
        });
        edit.map_err(|error| Failure::new(Exit::Internal, with_source(&error)))?;
        self.output.report(&format!("the project {} is trusted\n", path(&project.folder))).await?;
        Ok(Outcome::Trusted)
    }

    /// Shows what the plugins of a config are bound to, and what in it counts for nothing.
    async fn entries(
        &self,
        project: &Project,
        config: &Config,
    ) -> Result<Vec<(lemon_host::PluginName, lemon_host::trust::Subject)>, Failure> {
        let mut subjects = Vec::new();
        for (table, all) in [("plugins", &config.plugins), ("mcp.servers", &config.servers)] {
            for (name, entry) in all {
                let subject = entry_subject(project, name, entry).map_err(|why| {
                    Failure::new(Exit::Usage, format!("[{table}.{name}] of the project can't be trusted")).why(why)
                })?;
                self.output.report(&shown::entry(table, name, entry, &subject.files)).await?;
                subjects.push((name.clone(), subject));
            }
        }
        config.warnings.iter().for_each(|warning| self.output.warning(warning));
        Ok(subjects)
    }
}
