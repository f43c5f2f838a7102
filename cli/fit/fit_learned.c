/* Made by bench/models/defaults.py; do not edit. The configurations that are best together on the
 * public tables below, chosen one by one. A kind alone is the first trial of its kind.
 * Of a table at most 1,000 rows were drawn; losses are those of three folds, of the best trials of
 * four kinds.
 *
 * credit-g: 1000 rows, 20 columns, 2 classes, 65 % categories
 *   (renatopp/arff-datasets, classification/credit.g.arff)
 *   1 - auc: mlp 0.209, boosted_trees 0.209, random_forest 0.209, logistic 0.212;
 *   of the first trials without these 0.209, of these 0.209
 * kr-vs-kp: 1000 rows, 35 columns, 2 classes, 100 % categories
 *   (renatopp/arff-datasets, classification/kr.vs.kp.arff)
 *   1 - auc: mlp 0.00151, boosted_trees 0.00339, extra_trees 0.00372, logistic 0.0066;
 *   of the first trials without these 0.00238, of these 0.00151
 * ionosphere: 351 rows, 33 columns, 2 classes, 0 % categories
 *   (renatopp/arff-datasets, classification/ionosphere.arff)
 *   1 - auc: extra_trees 0.011, mlp 0.013, random_forest 0.0185, boosted_trees 0.0261;
 *   of the first trials without these 0.011, of these 0.011
 * tic-tac-toe: 958 rows, 9 columns, 2 classes, 100 % categories
 *   (renatopp/arff-datasets, classification/tic-tac-toe.arff)
 *   1 - auc: mlp 2.88e-05, boosted_trees 0.000404, extra_trees 0.000923, random_forest 0.00186;
 *   of the first trials without these 0.00107, of these 2.88e-05
 * sick: 1000 rows, 26 columns, 2 classes, 77 % categories
 *   (renatopp/arff-datasets, classification/sick.arff)
 *   1 - auc: boosted_trees 0.0132, extra_trees 0.0144, random_forest 0.0149, mlp 0.0214;
 *   of the first trials without these 0.0141, of these 0.0132
 * car: 1000 rows, 6 columns, 4 classes, 100 % categories
 *   (renatopp/arff-datasets, classification/car.arff)
 *   log_loss: mlp 0.06, boosted_trees 0.082, extra_trees 0.161, logistic 0.214;
 *   of the first trials without these 0.06, of these 0.06
 * vehicle: 846 rows, 18 columns, 4 classes, 0 % categories
 *   (renatopp/arff-datasets, classification/vehicle.arff)
 *   log_loss: mlp 0.343, boosted_trees 0.44, logistic 0.454, extra_trees 0.497;
 *   of the first trials without these 0.372, of these 0.347
 * segment: 1000 rows, 18 columns, 7 classes, 0 % categories
 *   (renatopp/arff-datasets, classification/segment.arff)
 *   log_loss: mlp 0.092, boosted_trees 0.101, logistic 0.109, extra_trees 0.123;
 *   of the first trials without these 0.0982, of these 0.092
 * cmc: 1000 rows, 9 columns, 3 classes, 0 % categories
 *   (renatopp/arff-datasets, classification/cmc.arff)
 *   log_loss: mlp 0.926, boosted_trees 0.928, random_forest 0.951, logistic 0.956;
 *   of the first trials without these 0.941, of these 0.926
 * splice: 1000 rows, 61 columns, 3 classes, 100 % categories
 *   (renatopp/arff-datasets, classification/splice.arff)
 *   log_loss: boosted_trees 0.107, naive_bayes 0.139, mlp 0.152, logistic 0.159;
 *   of the first trials without these 0.108, of these 0.107
 * auto-mpg: 398 rows, 7 columns, 0 classes, 0 % categories
 *   (renatopp/arff-datasets, regression/autompg.arff)
 *   rmse: mlp 2.67, boosted_trees 2.72, extra_trees 2.74, random_forest 2.8;
 *   of the first trials without these 2.67, of these 2.67
 * cpu-small: 1000 rows, 12 columns, 0 classes, 0 % categories
 *   (renatopp/arff-datasets, regression/cpu.small.arff)
 *   rmse: extra_trees 3.05, boosted_trees 3.31, mlp 3.39, random_forest 3.6;
 *   of the first trials without these 3.05, of these 3.05
 * kin8nm: 1000 rows, 8 columns, 0 classes, 0 % categories
 *   (renatopp/arff-datasets, regression/kin8nm.arff)
 *   rmse: mlp 0.107, knn 0.156, boosted_trees 0.168, extra_trees 0.172;
 *   of the first trials without these 0.109, of these 0.107
 * stock: 950 rows, 9 columns, 0 classes, 0 % categories
 *   (renatopp/arff-datasets, regression/stock.arff)
 *   rmse: extra_trees 0.626, knn 0.761, boosted_trees 0.768, mlp 0.791;
 *   of the first trials without these 0.627, of these 0.627
 * triazines: 186 rows, 58 columns, 0 classes, 0 % categories
 *   (renatopp/arff-datasets, regression/triazines.arff)
 *   rmse: boosted_trees 0.127, mlp 0.138, random_forest 0.139, extra_trees 0.139;
 *   of the first trials without these 0.129, of these 0.127
 */
#include "cli/fit/fit_learned.h"

#include "base/mem.h"

const char *const fit_learned[] = {
    "kind=boosted_trees rate=0.045 leaves=6 rows=0.92 columns=0.99 leaf_weight=1.1",
    "kind=mlp",
    "kind=extra_trees",
    "kind=mlp lr=0.015 width=128 dropout=0.04",
    "kind=mlp lr=0.018 numbers=piecewise_linear width=64 dropout=0.32",
    "kind=boosted_trees rate=0.11 leaves=6 rows=0.82 columns=0.45 leaf_weight=1.1",
    "kind=mlp lr=0.0033 width=64 dropout=0.22",
    "kind=mlp lr=0.0014 numbers=piecewise_linear width=64 dropout=0.32",
    "kind=boosted_trees rate=0.021 leaves=5 rows=0.7 columns=0.78 leaf_weight=1.4",
};

const size_t fit_n_learned = AS_ARRAY_LEN(fit_learned);
