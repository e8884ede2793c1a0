//! A look at a database of either kind: statements with values, rows with columns. What is read is asked for in the words
//! that both kinds know; [`words_for_postgres`] has the few that differ.

use std::borrow::Cow;

use onsale_core::id::AccountId;
use rusqlite::Connection;
use rusqlite::types::{ToSqlOutput, ValueRef};

use crate::error::StoreError;
use crate::names::Named;
use crate::postgres::Link;

pub(crate) type Parsed<T> = Result<T, StoreError>;

/// A connection to look through.
#[derive(Clone, Copy)]
pub(crate) enum Look<'a> {
    /// To the embedded database.
    Sqlite(&'a Connection),
    /// To a PostgreSQL server.
    Postgres(&'a Link),
}

impl Look<'_> {
    /// All rows of a statement, parsed.
    pub(crate) fn all<T>(
        self,
        text: &str,
        values: &[Value<'_>],
        mut parse: impl FnMut(&Row<'_>) -> Parsed<T>,
    ) -> Parsed<Vec<T>> {
        match self {
            Look::Sqlite(db) => {
                let mut statement = db.prepare_cached(text)?;
                let mut rows = statement.query(rusqlite::params_from_iter(values))?;
                let mut parsed = Vec::new();
                while let Some(row) = rows.next()? {
                    parsed.push(parse(&Row::Sqlite(row))?);
                }
                Ok(parsed)
            }
            Look::Postgres(link) => {
                let rows = link.query(&words_for_postgres(text), values)?;
                rows.iter().map(|row| parse(&Row::Postgres(row))).collect()
            }
        }
    }

    /// The first row of a statement, parsed, or none.
    pub(crate) fn one<T>(
        self,
        text: &str,
        values: &[Value<'_>],
        mut parse: impl FnMut(&Row<'_>) -> Parsed<T>,
    ) -> Parsed<Option<T>> {
        match self {
            Look::Sqlite(db) => {
                let mut statement = db.prepare_cached(text)?;
                let mut rows = statement.query(rusqlite::params_from_iter(values))?;
                rows.next()?.map(|row| parse(&Row::Sqlite(row))).transpose()
            }
            Look::Postgres(_) => Ok(self.all(text, values, parse)?.into_iter().next()),
        }
    }

    /// Runs a statement that changes rows; how many.
    pub(crate) fn execute(self, text: &str, values: &[Value<'_>]) -> Parsed<u64> {
        match self {
            Look::Sqlite(db) => {
                Ok(db.prepare_cached(text)?.execute(rusqlite::params_from_iter(values))? as u64)
            }
            Look::Postgres(link) => link.execute(&words_for_postgres(text), values),
        }
    }

    /// Makes sure that what was read before is what stays. A server whose wait for its standby was cancelled, or which is about
    /// to be replaced, shows what no other machine has: whoever tells a buyer of it, or acts on it, asks for this first.
    pub(crate) fn prove(self) -> Parsed<()> {
        match self {
            Look::Sqlite(_) => Ok(()),
            Look::Postgres(link) => link.prove(),
        }
    }

    /// Several statements over one state of the database.
    pub(crate) fn still<R>(self, work: impl FnOnce() -> Parsed<R>) -> Parsed<R> {
        match self {
            Look::Sqlite(db) => {
                let _look = db.unchecked_transaction()?;
                work()
            }
            Look::Postgres(link) => link.still(work),
        }
    }
}

/// A statement in PostgreSQL's words: parameters are `$1`, and a list kept as JSON is taken apart by a function of the schema.
fn words_for_postgres(text: &str) -> Cow<'_, str> {
    if !text.contains(['?', '(']) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(text.replace('?', "$").replace("json_each(", "each_of("))
}

/// A value given to a statement.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Value<'a> {
    Int(i64),
    Text(&'a str),
    /// An id or a digest.
    Bits(u128),
    Bytes(&'a [u8]),
}

macro_rules! value_of {
    ($($type:ty),*) => {$(
        impl From<$type> for Value<'_> {
            fn from(number: $type) -> Self {
                Value::Int(i64::from(number))
            }
        }
    )*};
}

value_of!(i64, u32, u16, u8, bool);

impl<'a> From<&'a str> for Value<'a> {
    fn from(text: &'a str) -> Self {
        Value::Text(text)
    }
}

impl From<u128> for Value<'_> {
    fn from(bits: u128) -> Self {
        Value::Bits(bits)
    }
}

impl rusqlite::ToSql for Value<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(match self {
            Value::Int(number) => ToSqlOutput::Borrowed(ValueRef::Integer(*number)),
            Value::Text(text) => ToSqlOutput::Borrowed(ValueRef::Text(text.as_bytes())),
            Value::Bits(bits) => {
                ToSqlOutput::Owned(rusqlite::types::Value::Blob(bits.to_be_bytes().to_vec()))
            }
            Value::Bytes(bytes) => ToSqlOutput::Borrowed(ValueRef::Blob(bytes)),
        })
    }
}

/// A row of either kind.
pub(crate) enum Row<'a> {
    Sqlite(&'a rusqlite::Row<'a>),
    Postgres(&'a tokio_postgres::Row),
}

impl Row<'_> {
    /// A whole number or a truth, if there is one.
    pub(crate) fn number_or_none<N: TryFrom<i64>>(&self, index: usize) -> Parsed<Option<N>> {
        let number = match self {
            Row::Sqlite(row) => row.get::<_, Option<i64>>(index)?,
            Row::Postgres(row) => row.try_get::<_, Option<AnyInt>>(index)?.map(|AnyInt(number)| number),
        };
        let corrupt = |number: i64| StoreError::Corrupt { wanted: "a number", found: number.to_string() };
        number.map(|number| N::try_from(number).map_err(|_| corrupt(number))).transpose()
    }

    /// A whole number.
    pub(crate) fn number<N: TryFrom<i64>>(&self, index: usize) -> Parsed<N> {
        self.number_or_none(index)?.ok_or_else(|| missing("a number"))
    }

    /// A truth.
    pub(crate) fn truth(&self, index: usize) -> Parsed<bool> {
        Ok(self.number::<i64>(index)? != 0)
    }

    /// A fraction.
    pub(crate) fn real(&self, index: usize) -> Parsed<f64> {
        match self {
            Row::Sqlite(row) => Ok(row.get(index)?),
            Row::Postgres(row) => Ok(row.try_get(index)?),
        }
    }

    /// A text, if there is one, looked at where it is.
    pub(crate) fn text_or_none(&self, index: usize) -> Parsed<Option<&str>> {
        match self {
            Row::Sqlite(row) => Ok(row.get_ref(index)?.as_str_or_null().map_err(rusqlite::Error::from)?),
            Row::Postgres(row) => Ok(row.try_get(index)?),
        }
    }

    /// A text.
    pub(crate) fn text(&self, index: usize) -> Parsed<&str> {
        self.text_or_none(index)?.ok_or_else(|| missing("a text"))
    }

    /// A text of one's own, if there is one.
    pub(crate) fn string_or_none(&self, index: usize) -> Parsed<Option<String>> {
        Ok(self.text_or_none(index)?.map(str::to_owned))
    }

    /// A text of one's own.
    pub(crate) fn string(&self, index: usize) -> Parsed<String> {
        Ok(self.text(index)?.to_owned())
    }

    /// Bytes.
    pub(crate) fn bytes(&self, index: usize) -> Parsed<Vec<u8>> {
        match self {
            Row::Sqlite(row) => Ok(row.get(index)?),
            Row::Postgres(row) => Ok(row.try_get(index)?),
        }
    }

    /// An id or a digest, if there is one: sixteen bytes.
    pub(crate) fn bits_or_none(&self, index: usize) -> Parsed<Option<u128>> {
        match self {
            Row::Sqlite(row) => Ok(row.get::<_, Option<[u8; 16]>>(index)?.map(u128::from_be_bytes)),
            Row::Postgres(row) => Ok(row.try_get::<_, Option<uuid::Uuid>>(index)?.map(|bits| bits.as_u128())),
        }
    }

    /// An id or a digest.
    pub(crate) fn bits(&self, index: usize) -> Parsed<u128> {
        self.bits_or_none(index)?.ok_or_else(|| missing("an id"))
    }

    /// An id.
    pub(crate) fn id<I: From<u128>>(&self, index: usize) -> Parsed<I> {
        self.bits(index).map(I::from)
    }

    /// An id, if there is one.
    pub(crate) fn id_or_none<I: From<u128>>(&self, index: usize) -> Parsed<Option<I>> {
        Ok(self.bits_or_none(index)?.map(I::from))
    }

    /// A value that has a word.
    pub(crate) fn word<N: Named>(&self, index: usize) -> Parsed<N> {
        N::of(self.text(index)?)
    }

    /// An account.
    pub(crate) fn account(&self, index: usize) -> Parsed<AccountId> {
        let text = self.text(index)?;
        let corrupt = || StoreError::Corrupt { wanted: "an account id", found: text.to_owned() };
        AccountId::parse(text).ok_or_else(corrupt)
    }

    /// The names of the columns.
    pub(crate) fn names(&self) -> Vec<&str> {
        match self {
            Row::Sqlite(row) => row.as_ref().column_names().collect(),
            Row::Postgres(row) => row.columns().iter().map(|column| column.name()).collect(),
        }
    }

    /// Whatever is there.
    pub(crate) fn any(&self, index: usize) -> Parsed<Any> {
        Ok(match self {
            Row::Sqlite(row) => match row.get_ref(index)? {
                ValueRef::Null => Any::None,
                ValueRef::Integer(number) => Any::Text(number.to_string()),
                ValueRef::Real(number) => Any::Text(number.to_string()),
                ValueRef::Text(text) => Any::Text(String::from_utf8_lossy(text).into_owned()),
                ValueRef::Blob(bytes) => Any::Bytes(bytes.to_vec()),
            },
            Row::Postgres(row) => crate::postgres::any(row, index)?,
        })
    }
}

/// A value of which only its text is wanted.
pub(crate) enum Any {
    None,
    Text(String),
    Bytes(Vec<u8>),
}

fn missing(wanted: &'static str) -> StoreError {
    StoreError::Corrupt { wanted, found: "nothing".to_owned() }
}

/// A whole number or a truth of any width.
struct AnyInt(i64);

impl<'a> tokio_postgres::types::FromSql<'a> for AnyInt {
    fn from_sql(
        ty: &tokio_postgres::types::Type,
        raw: &'a [u8],
    ) -> Result<AnyInt, Box<dyn std::error::Error + Sync + Send>> {
        use tokio_postgres::types::Type;
        Ok(AnyInt(match *ty {
            Type::INT2 => i64::from(i16::from_sql(ty, raw)?),
            Type::INT4 => i64::from(i32::from_sql(ty, raw)?),
            Type::BOOL => i64::from(bool::from_sql(ty, raw)?),
            _ => i64::from_sql(ty, raw)?,
        }))
    }

    fn accepts(ty: &tokio_postgres::types::Type) -> bool {
        use tokio_postgres::types::Type;
        matches!(*ty, Type::INT2 | Type::INT4 | Type::INT8 | Type::BOOL)
    }
}

#[cfg(test)]
mod tests {
    use super::words_for_postgres;

    #[test]
    fn a_statement_is_put_into_the_other_words() {
        let text = "SELECT value FROM json_each(?1) WHERE value = ?2";
        assert_eq!(words_for_postgres(text), "SELECT value FROM each_of($1) WHERE value = $2");
        assert_eq!(words_for_postgres("SELECT 1"), "SELECT 1");
    }
}
