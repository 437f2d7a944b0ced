import type { Db } from '../../../storage/database.ts'
import { lockVersion } from '../../../storage/access/record-versions.ts'
import type { App } from '../../app.ts'
import type { Call } from '../../kernel/call.ts'
import type { Guard } from '../../kernel/guard.ts'
import { Problem } from '../../kernel/problem.ts'
import { createRead, createRecordReader } from './read-records.ts'
import { hasHad, isMet, listChangedFields } from '../../visibility/record-version.ts'

/**
 * Checks `if_version` of a call (the header `If-Match` of REST) in the transaction of its change: the record stays
 * locked until that ends, so that nobody changes it in between. Throws 412 `precondition_failed` with the current
 * version, and the fields that differ from what the caller has read. A record that there is not, or that the caller may
 * not see, is left to the handler.
 */
const checkPrecondition = async (app: App, tx: Db, { actor, op, input }: Call): Promise<void> => {
  const given = input['if_version'] as string | undefined
  if (given === undefined || !op.versioned?.by) return
  const { kind, by } = op.versioned
  const id = String(input[by])
  const n = await lockVersion(tx, actor.workspace.id, kind, id)
  if (n === undefined || isMet(given, n)) return
  const shown = await createRecordReader(createRead(app, tx, actor))({ kind, id })
  if (!shown) return
  const version = shown['version'] as string
  const changed = listChangedFields(kind, given, version)
  const which = changed?.length ? ` What differs from what you read: ${changed.join(', ')}.` : ''
  const record = `${kind.replace('_', ' ')} ${id}`
  const detail = hasHad(given, n)
    ? `The ${record} was changed since the version that you read.${which}`
    : `If-Match, or if_version, names no version that the ${record} has had: a weak tag (W/"…"), which matches ` +
      'nothing, or one that was not read from here.'
  throw new Problem('precondition_failed', `${detail} Nothing was done.`, {
    current_version: version,
    ...(changed && hasHad(given, n) ? { changed_fields: changed } : {}),
  })
}

export const preconditions: Guard<App> = {
  only: { changes: true },
  inTransaction: (app, call, tx) => checkPrecondition(app, tx, call),
}
