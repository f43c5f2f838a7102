-- Data sets without a target, and models of clusters: the task clustering.
-- Locks: dataset, exclusively, for the check of its rows (few, small). A server of the version before
-- goes on: what it writes fits.

alter table dataset
    drop constraint dataset_task_check,
    add constraint dataset_task_check
        check (task in ('classification', 'regression', 'language_modeling', 'clustering'));
