//! What goes wrong with `lemon/configure`.

use crate::case::NotStarted::{Backoff, Failed};
use crate::case::{Case, fault};

pub(crate) fn cases() -> Vec<Case> {
    vec![
        fault("config-schema").configured("api_key", "k-123456").then(async |cage| {
            let told: serde_json::Value = serde_json::from_str(&cage.says("config", "{}").await).unwrap();
            let expected = serde_json::json!({ "api_key": "k-123456", "timeout": 5000 });
            assert_eq!((&told["values"], &told["generation"]), (&expected, &1.into()));
            cage.works().await;
        }),
        fault("config-schema").named("without what it needs").traced().then(async |cage| {
            let error = cage.start_error();
            assert!(error.contains("it does not accept its configuration at \"/api_key\""), "{error}");
            cage.rests_as(Failed).await;
            assert!(!cage.notes.has("lemon/configure"), "{}", cage.notes.all());
        }),
        fault("config-refused")
            .configured("api_key", "k-123456")
            .never_starts(Failed, &["it does not accept its configuration at \"/api_key\": the key was revoked"]),
        fault("config-silent")
            .configured("api_key", "k-123456")
            .start_within(1500)
            .never_starts(Backoff, &["it did not finish the configuration (lemon/configure) within 1.5 s"]),
        fault("config-exits")
            .configured("api_key", "k-123456")
            .never_starts(Backoff, &["it ended during the configuration (lemon/configure): exit status 78"]),
        fault("config-bad-schema").never_starts(Failed, &["schema"]),
    ]
}
