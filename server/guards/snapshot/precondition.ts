import type { Db } from '../../../storage/database.ts'
import { lockVersion } from '../../../storage/access/record-versions.ts'
import type { App } from '../../app.ts'
import type { Call } from '../../kernel/call.ts'
import type { Guard } from '../../kernel/guard.ts'
import { Problem } from '../../kernel/problem.ts'
import { createRead, createRecordReader } from './read-records.ts'

/** Whether a record whose version is `n` has had one of these versions: they count from 1. */
const hasHad = (versions: readonly string[], n: number): boolean =>
  versions.some((version) => /^[1-9]/.test(version) && Number(version) <= n)

/**
 * Checks `if_version` of a call (the header `If-Match` of REST) in the transaction of its change: the record stays
 * locked until that ends, so that nobody changes it in between. Throws 412 `precondition_failed` with the current
 * version. A record that there is not, or that the caller may not see, is left to the handler.
 */
const checkPrecondition = async (app: App, tx: Db, { actor, op, input }: Call): Promise<void> => {
  const given = input['if_version'] as string | undefined
  if (given === undefined || !op.versioned?.by) return
  const { kind, by } = op.versioned
  const id = String(input[by])
  const n = await lockVersion(tx, actor.workspace.id, kind, id)
  const versions = given.split(/, ?/)
  if (n === undefined || given === '*' || versions.includes(String(n))) return
  const shown = await createRecordReader(createRead(app, tx, actor))({ kind, id })
  if (!shown) return
  const record = `${kind.replace('_', ' ')} ${id}`
  const detail = hasHad(versions, n)
    ? `The ${record} was changed since the version that you read.`
    : `If-Match, or if_version, names no version that the ${record} has had: a weak tag (W/"…"), which matches ` +
      'nothing, or one that was not read from here.'
  throw new Problem('precondition_failed', `${detail} Nothing was done.`, { current_version: String(n) })
}

export const preconditions: Guard<App> = {
  only: { changes: true },
  inTransaction: (app, call, tx) => checkPrecondition(app, tx, call),
}
