//! What the page can do at once about a failure, beside the steps of its playbook: send the same to whoever was meant, and let
//! those act again whom the human has suspended.

use relay_core::domain::name::HUMAN;
use relay_core::domain::routing::Barrier;
use relay_core::error::Code;
use relay_core::wire::v1::Failed;
use serde_json::Value;

use super::form::Form;
use super::screens::trouble::Offer;

/// The same letter, to somebody who is called much the same.
pub fn instead(failed: &Failed, form: &Form) -> Vec<Offer> {
    let unknown = rows(failed).filter(|row| row["code"] == Code::RecipientNotFound.as_str());
    let pairs = unknown.flat_map(|row| row["nearest"].as_array().into_iter().flatten().map(move |near| (row, near)));
    let pairs = pairs.filter_map(|(row, near)| row["name"].as_str().zip(near.as_str()));
    let offer = |(wrong, right): (&str, &str)| Offer {
        label: format!("Send to {right} instead"),
        action: "send",
        fields: form.with_name("to", wrong, right),
    };
    pairs.filter(|(_, right)| *right != HUMAN).map(offer).collect()
}

/// To let those act again who are suspended. What was typed goes along, and a letter is shown again afterwards.
pub fn lifts(failed: &Failed, kept: &[(String, String)]) -> Vec<Offer> {
    let barred = rows(failed).filter(|row| row["reason"] == Barrier::Suspended.as_str());
    let own = failed.details.get("name").filter(|_| failed.code == Code::AgentSuspended);
    let names = barred.map(|row| &row["name"]).chain(own).filter_map(Value::as_str);
    // Those of another project are let act again on that one's page.
    let offer = |name: &str| Offer {
        label: format!("Let {name} act again"),
        action: "suspend",
        fields: [("name", name), ("lift", "1")]
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .into_iter()
            .chain(kept.iter().cloned())
            .collect(),
    };
    names.filter(|name| !name.contains('@')).map(offer).collect()
}

fn rows(failed: &Failed) -> impl Iterator<Item = &Value> {
    failed.details.get("recipients").and_then(Value::as_array).into_iter().flatten()
}
