import type { Db } from '../database.ts'
import { up } from './0001-baseline.ts'

export type DeclaredMigration = {
  readonly up: (db: Db) => Promise<void>
  /**
   * The newest migration that a server must know to run on the schema that this one leaves. Servers of the version
   * that ends with it go on while this one is applied. Absent: this one, so that all servers are replaced at once.
   */
  readonly oldest?: string
  /**
   * `none`: it builds indexes concurrently, which no transaction may. It may be cut off anywhere and run again.
   * An empty database has one transaction for all. Absent: one transaction, so that all of it is done or nothing.
   */
  readonly transaction?: 'none'
}

export type MigrationList = Readonly<Record<string, DeclaredMigration>>

/** By name, in whose order they are applied. */
export const migrations: MigrationList = { '0001-baseline': { up } }
