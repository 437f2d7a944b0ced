import type { VersionedKind } from '../../catalog/operation.ts'
import type { Db } from '../database.ts'
import { toStorableId } from '../values/ids.ts'
import { lockSavedFilterReferences } from '../filters/saved-filters.ts'

const lockRow = async (
  tx: Db,
  table: 'contacts' | 'templates' | 'quick_messages' | 'saved_filters',
  workspaceId: string,
  id: string,
): Promise<number | undefined> =>
  (
    await tx
      .selectFrom(table)
      .select('version')
      .where('workspace_id', '=', workspaceId)
      .where('id', '=', toStorableId(id))
      .forUpdate()
      .executeTakeFirst()
  )?.version

const lockEndpoint = async (tx: Db, workspaceId: string, id: string): Promise<number | undefined> =>
  (
    await tx
      .selectFrom('webhook_endpoints')
      .select('version')
      .where('workspace_id', '=', workspaceId)
      .where('id', '=', id)
      .where('deleted_at', 'is', null)
      .forUpdate()
      .executeTakeFirst()
  )?.version

const lockers: Readonly<
  Record<VersionedKind, (tx: Db, workspaceId: string, id: string) => Promise<number | undefined>>
> = {
  contact: (tx, workspaceId, id) => lockRow(tx, 'contacts', workspaceId, id),
  template: (tx, workspaceId, id) => lockRow(tx, 'templates', workspaceId, id),
  quick_message: (tx, workspaceId, id) => lockRow(tx, 'quick_messages', workspaceId, id),
  saved_filter: async (tx, workspaceId, id) => {
    // The order in which a change of the filter takes its locks.
    await lockSavedFilterReferences(tx, workspaceId)
    return await lockRow(tx, 'saved_filters', workspaceId, id)
  },
  endpoint: lockEndpoint,
}

/**
 * Locks a record until the transaction ends and returns its version, a count of its changes;
 * undefined when there is none.
 */
export const lockVersion = (
  tx: Db,
  workspaceId: string,
  kind: VersionedKind,
  id: string,
): Promise<number | undefined> => lockers[kind](tx, workspaceId, id)
