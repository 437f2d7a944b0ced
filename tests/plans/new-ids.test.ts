import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { it } from 'node:test'
import { catalog } from '../../catalog/index.ts'
import { isObject } from '../../catalog/values.ts'
import { checked, doorsOf, everyDatabase } from '../doors.ts'
import { makeWorkspace } from '../servers.ts'
import { buildExampleInputs, loadWorkspaceRows, seedWorld } from '../world.ts'

/** The table of the records that a field names. */
const tables: Readonly<Record<string, string>> = {
  tags: 'tags',
  groups: 'groups',
  conversations: 'conversations',
  last_message: 'messages',
  undone_by_job_id: 'bulk_jobs',
}

/** Returns the ids of records in a value, with their tables. */
const listIds = (value: unknown, at = ''): [table: string, id: string][] => {
  if (Array.isArray(value)) return value.flatMap((one) => listIds(one, at))
  if (!isObject(value)) return []
  return Object.entries(value).flatMap(([name, member]) => {
    const table = tables[name === 'id' ? at : name]
    return table && typeof member === 'string' ? [[table, member]] : listIds(member, name)
  })
}

everyDatabase('Plans of all operations', (server) => {
  it('have no id of a record that the change would create', async () => {
    const workspace = await makeWorkspace(server())
    const world = await seedWorld(server(), workspace, 'Planned', '0155')
    const door = checked(doorsOf(server().url, workspace.owner.key)[1]!)
    const rows = await loadWorkspaceRows(server().db, workspace.id)
    const creating = new Set<string>()
    for (const op of catalog.filter(({ dryRun }) => dryRun))
      for (const input of buildExampleInputs(world, op)) {
        const options = { idempotencyKey: randomUUID(), plan: 'show' }
        const { body } = await door.call(op.name, { ...input, dry_run: true }, options)
        for (const record of body.plan?.records ?? []) {
          const shown = `${op.name}: ${JSON.stringify(record)}`
          if (record.before === null) {
            creating.add(record.kind)
            assert.deepEqual([record.id, record.after.id ?? null], [null, null], shown)
          }
          for (const [table, id] of listIds(record.after))
            assert.ok(
              rows[table]!.some((row) => (JSON.parse(row) as { id: unknown }).id === Number(id)),
              `${table} ${id}, ${shown}`,
            )
        }
      }
    for (const kind of ['contact', 'group', 'template'])
      assert.ok(creating.has(kind), `${kind}, ${[...creating].join()}`)
  })
})
