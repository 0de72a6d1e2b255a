//! One page of an inbox, in the order of delivery.

use relay_core::domain::event::Number;
use relay_core::store::{InboxQuery, Result};
use rusqlite::params_from_iter;
use rusqlite::types::Value;

use super::view::View;

impl View<'_> {
    /// The messages of a page. Mail that one event delivered stays together, or the cursor would skip its rest.
    pub(super) fn inbox_numbers(&self, query: &InboxQuery<'_>) -> Result<Vec<Number>> {
        // Said outright: without statistics the planner may as well walk everything that was ever read.
        let index = if query.with_read { "inbox" } else { "inbox_unread" };
        let mut sql = format!("SELECT d.delivered_by, d.message FROM deliveries d INDEXED BY {index}");
        let mut conditions = vec![
            "d.recipient = ?".to_owned(),
            "d.delivered_by IS NOT NULL".to_owned(),
            "d.delivered_by > ?".to_owned(),
        ];
        let mut values = vec![Value::from(query.recipient.to_string()), number(query.after)];
        if query.thread.is_some() || query.urgent {
            sql.push_str(" JOIN messages m ON m.number = d.message");
        }
        if !query.with_read {
            conditions.push("d.read_at IS NULL".to_owned());
        }
        if query.never_surfaced {
            conditions.push("d.surfaced_at IS NULL".to_owned());
        }
        if let Some(from) = query.from {
            conditions.push("d.sender = ?".to_owned());
            values.push(Value::from(from.to_string()));
        }
        if let Some(thread) = query.thread {
            conditions.push("m.thread = ?".to_owned());
            values.push(Value::from(thread.to_string()));
        }
        if query.urgent {
            conditions.push("m.importance = 'urgent'".to_owned());
        }
        sql = format!("{sql} WHERE {} ORDER BY d.delivered_by, d.message", conditions.join(" AND "));
        // One row more tells whether the page ends inside a group.
        let limited = format!("{sql} LIMIT {}", query.limit.saturating_add(1));
        let read = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?));
        let rows: Vec<(Number, Number)> = self.all(&limited, params_from_iter(values.clone()), read)?;
        if rows.len() <= query.limit {
            return Ok(rows.into_iter().map(|(_, message)| message).collect());
        }
        let cut = rows[query.limit].0;
        if rows[0].0 == cut {
            // The first group alone is larger than the page: it comes whole.
            let whole: Vec<(Number, Number)> = self.all(&sql, params_from_iter(values), read)?;
            return Ok(whole
                .into_iter()
                .take_while(|(delivered_by, _)| *delivered_by == cut)
                .map(|(_, message)| message)
                .collect());
        }
        let is_whole = rows[query.limit - 1].0 != cut;
        Ok(rows
            .into_iter()
            .take(query.limit)
            .filter(|(delivered_by, _)| is_whole || *delivered_by != cut)
            .map(|(_, message)| message)
            .collect())
    }
}

fn number(number: Number) -> Value {
    Value::from(i64::try_from(number).unwrap_or(i64::MAX))
}
