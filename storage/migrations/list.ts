import * as baseline from './0001-baseline.ts'
import type { MigrationList } from './declare.ts'

/** By name, in whose order they are applied. */
export const migrations = { '0001-baseline': baseline } satisfies MigrationList
