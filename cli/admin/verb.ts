import type { Config } from '../../server/config.ts'
import type { WorkspaceRow } from '../../storage/workspace/admin.ts'
import type { Db } from '../../storage/database.ts'
import type { Io } from '../io.ts'
import type { CommandResult } from '../result.ts'

/** The context of one command run. The database is opened on first use, and migrated unless the command reads. */
export type AdminSession = {
  readonly io: Io
  readonly config: Config
  /** Start of the run, ISO 8601 UTC. */
  readonly now: string
  readonly db: () => Promise<Db>
  /** The workspace of `--workspace`, or the only one that exists. */
  readonly workspace: () => Promise<WorkspaceRow>
}

export type AdminFlags = Readonly<Record<string, string | boolean | undefined>>

export type AdminVerb = {
  /** Two words for a command below another. */
  readonly name: string
  /** The positional argument, such as `<id>`, and its description. */
  readonly argument?: readonly [term: string, about: string]
  readonly summary: string
  readonly about?: string
  /** Flags in the syntax of commander. Help lists `required` ones first. */
  readonly required?: readonly (readonly [flags: string, about: string])[]
  readonly options?: readonly (readonly [flags: string, about: string])[]
  /** True when it runs in one workspace and takes `--workspace`. */
  readonly scoped: boolean
  /**
   * What it may do to the database: one that reads never migrates it, one that creates may be the first, one that
   * migrates gets it as it is, and one with none needs no database. Absent: it must exist, and is migrated.
   */
  readonly access?: 'read' | 'create' | 'migrate' | 'none'
  /** Columns of a list; absent when the result is a record. */
  readonly columns?: readonly string[]
  /** The exit code of a result that is printed; 0 when absent. */
  readonly exitCode?: (result: CommandResult) => number
  readonly run: (session: AdminSession, flags: AdminFlags, argument: string) => Promise<CommandResult>
}

export type AdminGroup = {
  readonly name: string
  readonly summary: string
  readonly verbs: readonly AdminVerb[]
}
