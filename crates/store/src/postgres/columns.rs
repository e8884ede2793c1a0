//! Rows on their way into a table: each column as one array, so that all of them are written by one statement.

use std::borrow::Cow;

use tokio_postgres::types::ToSql;
use uuid::Uuid;

/// A value of a row.
pub(super) enum Cell<'a> {
    Null,
    Int(i64),
    Real(f64),
    Text(Cow<'a, str>),
    Bits(u128),
}

macro_rules! cell_of {
    ($($type:ty),*) => {$(
        impl From<$type> for Cell<'_> {
            fn from(number: $type) -> Self {
                Cell::Int(i64::from(number))
            }
        }
    )*};
}

cell_of!(i64, u32, u16, u8, bool);

impl From<u64> for Cell<'_> {
    fn from(number: u64) -> Self {
        // Versions and epochs: they count changes.
        Cell::Int(number as i64)
    }
}

impl From<u128> for Cell<'_> {
    fn from(bits: u128) -> Self {
        Cell::Bits(bits)
    }
}

impl From<f64> for Cell<'_> {
    fn from(number: f64) -> Self {
        Cell::Real(number)
    }
}

impl<'a> From<&'a str> for Cell<'a> {
    fn from(text: &'a str) -> Self {
        Cell::Text(Cow::Borrowed(text))
    }
}

impl<'a> From<&'a String> for Cell<'a> {
    fn from(text: &'a String) -> Self {
        Cell::Text(Cow::Borrowed(text))
    }
}

impl From<String> for Cell<'_> {
    fn from(text: String) -> Self {
        Cell::Text(Cow::Owned(text))
    }
}

impl<'a, T: Into<Cell<'a>>> From<Option<T>> for Cell<'a> {
    fn from(value: Option<T>) -> Self {
        value.map_or(Cell::Null, Into::into)
    }
}

/// A row's values.
macro_rules! cells {
    ($($value:expr),* $(,)?) => { [$(crate::postgres::columns::Cell::from($value)),*] };
}
pub(super) use cells;

/// The type of a column.
#[derive(Clone, Copy)]
pub(super) enum Kind {
    Int2,
    Int4,
    Int8,
    Real,
    Text,
    Id,
}

impl Kind {
    fn word(self) -> &'static str {
        match self {
            Kind::Int2 => "smallint",
            Kind::Int4 => "integer",
            Kind::Int8 => "bigint",
            Kind::Real => "double precision",
            Kind::Text => "text",
            Kind::Id => "uuid",
        }
    }
}

/// A column's values, one for each row.
enum Column<'a> {
    Int2(Vec<Option<i16>>),
    Int4(Vec<Option<i32>>),
    Int8(Vec<Option<i64>>),
    Real(Vec<Option<f64>>),
    Text(Vec<Option<Cow<'a, str>>>),
    Id(Vec<Option<Uuid>>),
}

impl<'a> Column<'a> {
    fn new(kind: Kind) -> Column<'a> {
        match kind {
            Kind::Int2 => Column::Int2(Vec::new()),
            Kind::Int4 => Column::Int4(Vec::new()),
            Kind::Int8 => Column::Int8(Vec::new()),
            Kind::Real => Column::Real(Vec::new()),
            Kind::Text => Column::Text(Vec::new()),
            Kind::Id => Column::Id(Vec::new()),
        }
    }

    fn push(&mut self, cell: Cell<'a>) {
        match (self, cell) {
            (Column::Int2(values), Cell::Int(number)) => values.push(Some(number as i16)),
            (Column::Int4(values), Cell::Int(number)) => values.push(Some(number as i32)),
            (Column::Int8(values), Cell::Int(number)) => values.push(Some(number)),
            (Column::Real(values), Cell::Real(number)) => values.push(Some(number)),
            (Column::Text(values), Cell::Text(text)) => values.push(Some(text)),
            (Column::Id(values), Cell::Bits(bits)) => values.push(Some(Uuid::from_u128(bits))),
            (Column::Int2(values), Cell::Null) => values.push(None),
            (Column::Int4(values), Cell::Null) => values.push(None),
            (Column::Int8(values), Cell::Null) => values.push(None),
            (Column::Real(values), Cell::Null) => values.push(None),
            (Column::Text(values), Cell::Null) => values.push(None),
            (Column::Id(values), Cell::Null) => values.push(None),
            _ => unreachable!("a row's values have the types of its table's columns"),
        }
    }

    fn value(&self) -> &(dyn ToSql + Sync) {
        match self {
            Column::Int2(values) => values,
            Column::Int4(values) => values,
            Column::Int8(values) => values,
            Column::Real(values) => values,
            Column::Text(values) => values,
            Column::Id(values) => values,
        }
    }
}

/// How rows are written: the text of the statement, and the types of its arrays.
pub(super) struct Writing {
    pub(super) table: &'static str,
    pub(super) text: String,
    kinds: Vec<Kind>,
}

type Columns = [(&'static str, Kind)];

fn arrays(kinds: &[Kind]) -> String {
    let each = kinds.iter().enumerate().map(|(index, kind)| format!("${}::{}[]", index + 1, kind.word()));
    each.collect::<Vec<_>>().join(", ")
}

impl Writing {
    /// Inserts rows.
    pub(super) fn insert(table: &'static str, columns: &Columns) -> Writing {
        let kinds: Vec<Kind> = columns.iter().map(|(_, kind)| *kind).collect();
        let names = columns.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
        let text = format!("INSERT INTO {table} ({names}) SELECT * FROM unnest({})", arrays(&kinds));
        Writing { table, text, kinds }
    }

    /// Changes rows that still are as they were. A row's values are: what it becomes, its key, what it was.
    pub(super) fn update(table: &'static str, becomes: &Columns, key: &Columns, was: &Columns) -> Writing {
        let all = || becomes.iter().chain(key).chain(was);
        let kinds: Vec<Kind> = all().map(|(_, kind)| *kind).collect();
        let number = |index: usize| format!("u.v{}", index + 1);
        let names = (0..kinds.len()).map(|index| format!("v{}", index + 1)).collect::<Vec<_>>().join(", ");
        let set = becomes.iter().enumerate().map(|(index, (name, _))| format!("{name} = {}", number(index)));
        let keys = key
            .iter()
            .enumerate()
            .map(|(index, (name, _))| format!("t.{name} = {}", number(becomes.len() + index)));
        let conditions = was.iter().enumerate().map(|(index, (name, _))| {
            format!("t.{name} IS NOT DISTINCT FROM {}", number(becomes.len() + key.len() + index))
        });
        let text = format!(
            "UPDATE {table} t SET {} FROM unnest({}) AS u ({names}) WHERE {}",
            set.collect::<Vec<_>>().join(", "),
            arrays(&kinds),
            keys.chain(conditions).collect::<Vec<_>>().join(" AND "),
        );
        Writing { table, text, kinds }
    }
}

/// Rows to be written in one way.
pub(super) struct Rows<'a> {
    pub(super) writing: &'static Writing,
    columns: Vec<Column<'a>>,
    pub(super) count: u64,
}

impl<'a> Rows<'a> {
    pub(super) fn new(writing: &'static Writing) -> Rows<'a> {
        let columns = writing.kinds.iter().map(|kind| Column::new(*kind)).collect();
        Rows { writing, columns, count: 0 }
    }

    pub(super) fn push<const N: usize>(&mut self, row: [Cell<'a>; N]) {
        assert_eq!(N, self.columns.len(), "a row has as many values as its table has columns");
        self.columns.iter_mut().zip(row).for_each(|(column, cell)| column.push(cell));
        self.count += 1;
    }

    pub(super) fn values(&self) -> Vec<&(dyn ToSql + Sync)> {
        self.columns.iter().map(Column::value).collect()
    }
}
