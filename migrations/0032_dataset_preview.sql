-- What people see of a data set beside its record: the distribution of its columns, and the models that learned from it.
-- Why: a distribution takes a walk over the whole content, which never changes: it is made once, by the first who asks.
-- Which versions of models learned from a data set is in their lineage, where only an index finds it.
-- Locks: dataset exclusively and briefly (a column without a default); model_version against writes while the index is
-- made (a table of thousands of rows at most).

alter table dataset add column preview json;              -- null: nobody has asked yet

create index model_version_dataset on model_version ((lineage -> 'dataset' ->> 'name'), model, version);
