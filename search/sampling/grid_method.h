/* The method `grid`: cell t of the space's grid (grid.h) is suggestion t. */
#ifndef ASSAY_SEARCH_SAMPLING_GRID_METHOD_H
#define ASSAY_SEARCH_SAMPLING_GRID_METHOD_H

#include "search/problem/method.h"

/* Its reason: {"method": "grid", "cell": 3, "cells": 12}. A grid that was not prepared is created
 * for each suggestion. */
extern const struct search_method search_grid;

#endif
