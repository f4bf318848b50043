// SQLite in memory: inserts, an index, joins, aggregates, updates and a text search.
#include <sqlite3.h>
#include <stdio.h>

static const char *const work[] = {
    "CREATE TABLE ship(id INTEGER PRIMARY KEY, name TEXT, tons INTEGER, length REAL)",
    "CREATE TABLE call(ship INTEGER, port INTEGER, day INTEGER, cargo REAL)",
    "BEGIN",
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 80000) INSERT INTO ship "
    "SELECT i, printf('ship-%05d', i * 7919 % 80021), i * 31 % 9973, i % 300 + 0.25 FROM n",
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 500000) INSERT INTO call "
    "SELECT i * 7 % 80000 + 1, i * 13 % 97, i % 365, i % 1000 / 8.0 FROM n",
    "COMMIT",
    "CREATE INDEX call_by_ship ON call(ship, day)",
    "SELECT port, count(*), sum(cargo), max(day) FROM call GROUP BY port ORDER BY 2 DESC, 1 LIMIT 5",
    "SELECT count(*), sum(tons * cargo) FROM ship JOIN call ON call.ship = ship.id WHERE day BETWEEN 30 AND 300",
    "UPDATE ship SET tons = tons + (SELECT count(*) FROM call WHERE call.ship = ship.id)",
    "SELECT sum(tons), avg(length), min(name) FROM ship WHERE name LIKE '%7%3%'",
    "SELECT name, tons FROM ship ORDER BY tons DESC, name LIMIT 5",
    "DELETE FROM call WHERE day % 3 = 0",
    "SELECT count(*), total(cargo), group_concat(DISTINCT port % 7) FROM call",
    "SELECT a.port, count(DISTINCT a.ship) FROM call a JOIN call b ON a.ship = b.ship AND a.day < b.day "
    "GROUP BY a.port ORDER BY 2, 1 LIMIT 5",
};

static int print_row(void *unused, int columns, char **values, char **names) {
    (void)unused, (void)names;
    for (int i = 0; i < columns; i++) printf("%s%c", values[i] ? values[i] : "null", i + 1 < columns ? '|' : '\n');
    return 0;
}

int main(void) {
    sqlite3 *db;
    if (sqlite3_open(":memory:", &db) != SQLITE_OK) return 1;
    for (unsigned i = 0; i < sizeof work / sizeof *work; i++) {
        char *error = NULL;
        if (sqlite3_exec(db, work[i], print_row, NULL, &error) != SQLITE_OK) {
            fprintf(stderr, "sqlite: %s: %s\n", work[i], error);
            return 1;
        }
    }
    sqlite3_close(db);
}
