-- Data sets that are more than tables of numbers: images, text, categories, missing values; and what a
-- sweep's data set was when the sweep was made, so that a name that holds other content by now is seen.
-- Locks: dataset and sweep_dataset, exclusively, for the check of their rows (few, small). A server of the
-- version before goes on: what it writes fits, the new columns have defaults.

alter table dataset
    drop constraint dataset_format_check,
    drop constraint dataset_task_check,
    add constraint dataset_format_check
        check (format in ('csv', 'npy', 'npz', 'idx', 'cifar', 'safetensors', 'text', 'tokens')),
    add constraint dataset_task_check check (task in ('classification', 'regression', 'language_modeling')),
    add column input   text not null default 'table',
    add column options json,                            -- how the files are read, where it is not the default
    add column image   json,                            -- height, width, channels
    add column columns json,                            -- of a table: kind, missing values, categories
    add constraint dataset_input check (input in ('table', 'image', 'tokens')),
    add constraint dataset_image check ((input = 'image') = (image is not null)),
    add constraint dataset_tokens check ((input = 'tokens') = (task = 'language_modeling'));

alter table sweep_dataset                               -- null: the sweep is from before this migration
    add column sha256     text,
    add column n_rows     bigint,
    add column n_features bigint;
