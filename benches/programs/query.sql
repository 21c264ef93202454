-- Rows, an index, groups and a join, all in memory.
create table item(id integer primary key, name text, part int);
begin;
with recursive n(i) as (select 1 union all select i + 1 from n where i < 150000)
    insert into item select i, 'row' || i || hex(i * 7), i % 1000 from n;
commit;
create index item_part on item(part, name);
select count(*), sum(length(name)) from item where part between 10 and 500;
select part, count(*), length(group_concat(name)) from item group by part order by 2 desc, 1 limit 3;
select count(*) from item x join item y on x.part = y.part and x.id < 10000;
update item set name = upper(name) || id where id % 3 = 0;
delete from item where id % 5 = 0;
select sum(length(j)) from (select json_group_array(name) j from item group by part);
