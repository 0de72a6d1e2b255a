//! Tables of the store against the same tables from a replay, row by row and both ways.

use relay_core::domain::event::Number;
use relay_core::domain::time::{Span, Timestamp};
use relay_core::store::Result;
use rusqlite::types::{Value, ValueRef};
use rusqlite::{Connection, Row};

use super::replay::PROJECTIONS;
use super::verify::{Replayed, Snapshot};
use crate::verify::Findings;

/// A table with the columns that are compared, and those of them that find a row.
struct Table {
    name: &'static str,
    columns: Vec<String>,
    key: Vec<String>,
}

impl Snapshot {
    /// Every projection is what the history gives, and so is the list of what the search index knows.
    pub fn projections(
        &self,
        replayed: &Replayed,
        findings: &mut Findings,
        mut progress: impl FnMut(Number, Number),
    ) -> Result<()> {
        let of = PROJECTIONS.len() as Number + 1;
        for (done, name) in PROJECTIONS.iter().copied().chain(["search_docsize"]).enumerate() {
            progress(done as Number, of);
            let compared = Table::of(&replayed.connection, name).and_then(|table| {
                table.compare(&self.connection, &replayed.connection, |number, what| findings.store(name, number, what))
            });
            compared.or_else(|fault| self.found(findings, name, None, "it cannot be compared", &fault))?;
        }
        Ok(())
    }

    /// The search index holds the words of the messages, each where it stands, and no others.
    pub fn search(&self, replayed: &Replayed, findings: &mut Findings) -> Result<()> {
        let compared = words(&self.connection, &replayed.connection);
        match compared {
            Ok(None) => Ok(()),
            Ok(Some(message)) => {
                findings.store("search", message, "the index differs from the texts");
                Ok(())
            }
            Err(fault) => self.found(findings, "search", None, "the index cannot be read", &fault),
        }
    }
}

impl Table {
    fn of(connection: &Connection, name: &'static str) -> rusqlite::Result<Self> {
        let mut statement = connection.prepare("SELECT name, pk FROM pragma_table_info(?1)")?;
        let rows: Vec<(String, i64)> =
            statement.query_map([name], |row| Ok((row.get(0)?, row.get(1)?)))?.collect::<rusqlite::Result<_>>()?;
        let key = rows.iter().filter(|(_, place)| *place > 0).map(|(column, _)| column.clone()).collect();
        // Of the index's own bookkeeping, `origin` tells when a row was written, which no history says.
        let columns = rows.into_iter().map(|(column, _)| column).filter(|column| column != "origin").collect();
        Ok(Table { name, columns, key })
    }

    fn compare(
        &self,
        stored: &Connection,
        replayed: &Connection,
        mut found: impl FnMut(Option<Number>, String),
    ) -> rusqlite::Result<()> {
        self.each_missing(stored, replayed, |row, other| {
            let what = match other {
                None => "no event gives it".to_owned(),
                Some(other) => self.difference(row, other),
            };
            found(self.number(row), format!("{}: {what}", self.shown(row)));
        })?;
        self.each_missing(replayed, stored, |row, other| {
            if other.is_none() {
                found(self.number(row), format!("{} is missing", self.shown(row)));
            }
        })
    }

    /// Each row of one that the other does not have just so, with what the other has in its place.
    fn each_missing(
        &self,
        one: &Connection,
        other: &Connection,
        mut each: impl FnMut(&[Value], Option<&[Value]>),
    ) -> rusqlite::Result<()> {
        let columns = self.columns.join(", ");
        let key: Vec<String> =
            self.key.iter().enumerate().map(|(place, column)| format!("{column} IS ?{}", place + 1)).collect();
        let mut all = one.prepare(&format!("SELECT {columns} FROM {}", self.name))?;
        let mut same = other.prepare(&format!("SELECT {columns} FROM {} WHERE {}", self.name, key.join(" AND ")))?;
        let mut rows = all.query([])?;
        while let Some(row) = rows.next()? {
            let row = self.values(row)?;
            let key = self.key.iter().filter_map(|name| self.value(&row, name));
            let mut found = same.query(rusqlite::params_from_iter(key))?;
            let counterpart = match found.next()? {
                Some(found) => Some(self.values(found)?),
                None => None,
            };
            if counterpart.as_ref() != Some(&row) {
                each(&row, counterpart.as_deref());
            }
        }
        Ok(())
    }

    /// Bytes that are no text are compared as they are.
    fn values(&self, row: &Row<'_>) -> rusqlite::Result<Vec<Value>> {
        let value = |column| {
            Ok(match row.get_ref(column)? {
                ValueRef::Null => Value::Null,
                ValueRef::Integer(number) => Value::Integer(number),
                ValueRef::Real(number) => Value::Real(number),
                ValueRef::Text(bytes) => match std::str::from_utf8(bytes) {
                    Ok(text) => Value::Text(text.to_owned()),
                    Err(_) => Value::Blob(bytes.to_vec()),
                },
                ValueRef::Blob(bytes) => Value::Blob(bytes.to_vec()),
            })
        };
        (0..self.columns.len()).map(value).collect()
    }

    fn value<'a>(&self, row: &'a [Value], column: &str) -> Option<&'a Value> {
        self.columns.iter().position(|name| name == column).and_then(|place| row.get(place))
    }

    fn number(&self, row: &[Value]) -> Option<Number> {
        match self.key.first().and_then(|name| self.value(row, name)) {
            Some(Value::Integer(number)) => Number::try_from(*number).ok(),
            _ => None,
        }
    }

    /// A row by its key.
    fn shown(&self, row: &[Value]) -> String {
        let part = |name: &String| Some(format!("{name} {}", shown(name, self.value(row, name)?)));
        let key: Vec<String> = self.key.iter().filter_map(part).collect();
        format!("the row with {}", key.join(" and "))
    }

    fn difference(&self, row: &[Value], other: &[Value]) -> String {
        let pairs = self.columns.iter().zip(row.iter().zip(other));
        let differences: Vec<String> = pairs
            .filter(|(_, (stored, said))| stored != said)
            .map(|(column, (stored, said))| {
                format!("{column} is {}, by the history {}", shown(column, stored), shown(column, said))
            })
            .collect();
        differences.join("; ")
    }
}

/// A value as relay shows it elsewhere: a time as a time, a length of time as one.
fn shown(column: &str, value: &Value) -> String {
    match value {
        Value::Integer(millis) if column.ends_with("_at") || column == "ack_due" => {
            Timestamp::from_millis(*millis).to_string()
        }
        Value::Integer(millis) if column == "ttl" || column == "ack_within" => Span::millis(*millis).to_string(),
        Value::Null => "nothing".to_owned(),
        Value::Integer(number) => number.to_string(),
        Value::Real(number) => number.to_string(),
        Value::Text(text) => text.clone(),
        Value::Blob(bytes) => relay_core::domain::event::hex(bytes),
    }
}

/// A message in which a word of one index is not where the other has it.
fn words(stored: &Connection, replayed: &Connection) -> rusqlite::Result<Option<Option<Number>>> {
    const WORDS: &str = "SELECT term, doc, col, offset FROM temp.words";
    for connection in [stored, replayed] {
        connection
            .execute_batch("CREATE VIRTUAL TABLE IF NOT EXISTS temp.words USING fts5vocab (main, search, instance)")?;
    }
    let (mut one, mut other) = (stored.prepare(WORDS)?, replayed.prepare(WORDS)?);
    let (mut one, mut other) = (one.query([])?, other.query([])?);
    loop {
        let (ours, theirs) = (one.next()?, other.next()?);
        match (ours, theirs) {
            (None, None) => return Ok(None),
            (Some(ours), Some(theirs)) => {
                for column in 0..4 {
                    if ours.get_ref(column)? != theirs.get_ref(column)? {
                        return Ok(Some(theirs.get(1).ok()));
                    }
                }
            }
            (row, None) | (None, row) => return Ok(Some(row.and_then(|row| row.get(1).ok()))),
        }
    }
}
