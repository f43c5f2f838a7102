-- Data sets may have test rows: files of their own that no search sees.
--
-- Locks: dataset and dataset_file, exclusively, for the check of their rows (few, small). A server of the version before
-- goes on to work, and sees data sets without their test rows.
alter table dataset
    add column test_rows    bigint check (test_rows > 0),
    add column train_sha256 text check (train_sha256 ~ '^[0-9a-f]{64}$'),   -- of the data set without its test rows
    add constraint dataset_test check ((test_rows is null) = (train_sha256 is null));
alter table dataset_file
    drop constraint dataset_file_role_check,
    add constraint dataset_file_role_check
        check (role in ('table', 'features', 'targets', 'test', 'test_features', 'test_targets'));
