$RUN /usr/bin/sqlite3 file.db <<'SQL'
create table t (a integer primary key, b integer, c text);
with recursive n(x) as (select 1 union all select x + 1 from n where x < 300)
insert into t select x, x * x % 97, printf('%05d', x) from n;
create index i on t (b, c);
begin; delete from t where a % 3 = 0; rollback;
select count(*), sum(b), avg(a), group_concat(distinct b % 5) from t;
select b, c from t where b between 5 and 7 order by c desc limit 5;
select json_extract('{"a": [1, 2.5, "x"]}', '$.a[1]'), strftime('%Y', 0, 'unixepoch'), sin(1);
vacuum;
pragma integrity_check;
SQL
sha256sum file.db
