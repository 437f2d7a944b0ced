import assert from 'node:assert/strict'
import { it } from 'node:test'
import fc from 'fast-check'
import { everyDatabase } from '../doors.ts'
import { runs } from '../level.ts'
import type { TestServer } from '../servers.ts'
import { createImportScene, formatPhone, type ContactImportScene, listImportEvents } from './imports.ts'

type Named = { name: string }
type FieldError = { pointer: string; code: string; detail: string; fix: string }
type RowFailure = { row: number; code: string; message: string; errors: FieldError[] }
/** The action of a row that succeeded, or the code, detail and field errors of one that failed. */
type RowOutcome = string | [code: string, detail: string, errors: string[][]]

const toNames = (rows: readonly Named[]): string[] => rows.map(({ name }) => name)

/** Creates the custom fields and the two groups that rows refer to; returns the ids of the groups. */
const createReferences = async ({ run }: ContactImportScene): Promise<string[]> => {
  for (const [key, type] of [
    ['note', 'text'],
    ['size', 'int'],
    ['when', 'datetime'],
    ['yes', 'boolean'],
  ])
    await run('crm_create_custom_field', { key, type })
  await run('crm_create_custom_field', {
    key: 'many',
    type: 'multiselect',
    options: ['a', 'b', 'c'].map((value) => ({ label: value.toUpperCase(), value })),
  })
  return [
    (await run('crm_create_group', { name: 'One' })).group.id,
    (await run('crm_create_group', { name: 'Two' })).group.id,
  ]
}

const attributeValues = {
  note: fc.constantFrom('', 'Straße', '𝕏 \u0001', 'a "quoted" \\ {text}, null'),
  size: fc.constantFrom<unknown>(0, -7, '12'),
  when: fc.constant('2026-10-01T09:30:00+02:00'),
  yes: fc.boolean(),
  many: fc.constantFrom<unknown>(['a', 'c'], 'b', []),
}
const attributes = fc.record(
  Object.fromEntries(
    Object.entries(attributeValues).map(([key, value]) => [key, fc.option(value, { freq: 5 })]),
  ),
  { requiredKeys: [] },
)
const phone = fc.constantFrom(...Array.from({ length: 4 }, (_, n) => `+${formatPhone(n)}`))
/** A tag's name of digits, which is the id of no tag. */
const DIGITS = '90071992547'
const minimalRow = fc.record({ phone, name: fc.constantFrom('Ada', 'Ünal') })
/** `group_ids` holds indexes into the groups of the workspace. */
const fullRow = fc.record(
  {
    phone,
    name: fc.constantFrom('Ada', 'Ünal', 'İ', ' Eve '),
    email: fc.constantFrom('Ada@Example.com', 'b@example.com', ''),
    attributes,
    tags: fc.uniqueArray(fc.constantFrom('VIP', 'vip', 'Straße', 'STRASSE', DIGITS), { maxLength: 3 }),
    group_ids: fc.subarray([0, 1]),
  },
  { requiredKeys: ['phone'] },
)
const invalidRow = fc
  .tuple(
    phone,
    fc.constantFrom(
      { phone: '0123' },
      { name: '' },
      { attributes: { note: 'discarded', never: 'x' } },
      { attributes: { size: 'many' } },
      { tags: ['discarded', 999999999] },
      { group_ids: [0, 2] },
    ),
  )
  .map(([validPhone, invalid]) => ({ phone: validPhone, ...invalid }))
const row = fc.oneof(
  { weight: 3, arbitrary: minimalRow },
  { weight: 5, arbitrary: fullRow },
  { weight: 2, arbitrary: invalidRow },
)

/** Rows with each outcome, so that no run depends on what is generated. */
const EVERY_OUTCOME = [
  { phone: '+15550000001', name: 'Ada' },
  { phone: '+15550000001', name: 'Ada' },
  { phone: '+15550000001', name: 'Ünal' },
  { phone: '0123' },
  { phone: '+15550000002', attributes: { never: 'x' } },
  { phone: '+15550000002', group_ids: [0, 2] },
  { phone: '+15550000002', tags: ['discarded', 999999999] },
]

const toErrorRows = (errors: readonly FieldError[], prefix: string): string[][] =>
  errors.map((e) => [e.pointer.replace(prefix, '#'), e.code, e.detail, e.fix])

/** Upserts the rows one after another. */
const upsertEach = async ({ call }: ContactImportScene, rows: readonly object[]): Promise<RowOutcome[]> => {
  const outcomes: RowOutcome[] = []
  for (const input of rows) {
    const { status, body } = await call('crm_upsert_contact', { ...input })
    outcomes.push(status === 200 ? body.action : [body.code, body.detail, toErrorRows(body.errors, '#')])
  }
  return outcomes
}

/** Imports the rows with one call. */
const importAll = async ({ run }: ContactImportScene, rows: readonly object[]): Promise<RowOutcome[]> => {
  const { results, failures } = await run('crm_import_contacts', { rows })
  const failureByRow = new Map((failures as RowFailure[]).map((f) => [f.row, f]))
  return results.map(({ row: n, action }: { row: number; action: string }) => {
    const failure = failureByRow.get(n)
    return failure ? [failure.code, failure.message, toErrorRows(failure.errors, `#/rows/${n}`)] : action
  })
}

const listContacts = async ({ run }: ContactImportScene): Promise<object[]> => {
  const { data } = await run('crm_search_contacts', {
    detail: 'full',
    sort: { field: 'phoneNumber', direction: 'asc' },
  })
  return data.map(
    ({
      id: _id,
      created_at: _createdAt,
      updated_at: _updatedAt,
      version: _version,
      tags,
      groups,
      ...contact
    }: {
      id: string
      created_at: string
      updated_at: string
      version: string
      tags: Named[]
      groups: Named[]
    }) => ({ ...contact, tags: toNames(tags), groups: toNames(groups) }),
  )
}

const listContactEvents = async (
  server: TestServer,
  { workspace }: ContactImportScene,
): Promise<unknown[][]> =>
  (await listImportEvents(server, workspace.id))
    .filter((e) => e.type.startsWith('contact.'))
    .map(({ type, data }) => {
      const { contact, changes, tags, groups } = data as {
        contact?: { name: string; phone: string }
        changes?: string[]
        tags?: Named[]
        groups?: Named[]
      }
      return [type, contact?.name, contact?.phone, changes, tags && toNames(tags), groups && toNames(groups)]
    })

const listAttributeRows = ({ db }: TestServer, { workspace }: ContactImportScene) =>
  db
    .selectFrom('contact_attributes as a')
    .innerJoin('contacts as c', (on) =>
      on.onRef('c.workspace_id', '=', 'a.workspace_id').onRef('c.id', '=', 'a.contact_id'),
    )
    .innerJoin('custom_fields as f', (on) =>
      on.onRef('f.workspace_id', '=', 'a.workspace_id').onRef('f.id', '=', 'a.field_id'),
    )
    .select(['c.phone', 'f.key', 'a.n', 'a.text_key', 'a.free'])
    .select(['a.number_value', 'a.bool_value', 'a.time_value'])
    .where('a.workspace_id', '=', workspace.id)
    .orderBy('c.phone')
    .orderBy('f.key')
    .orderBy('a.n')
    .execute()

/** Returns all that an import writes, without ids and times, which differ between two workspaces. */
const loadSnapshot = async (server: TestServer, scene: ContactImportScene) => {
  const { run } = scene
  const listCounts = async (op: string) =>
    (await run(op)).data.map((r: Named & { contacts_count: number }) => [r.name, r.contacts_count])
  return {
    contacts: await listContacts(scene),
    events: await listContactEvents(server, scene),
    values: await listAttributeRows(server, scene),
    tags: await listCounts('crm_list_tags'),
    groups: await listCounts('crm_list_groups'),
    fields: (await run('crm_list_custom_fields')).data.map((f: { key: string; in_use: boolean }) => [
      f.key,
      f.in_use,
    ]),
  }
}

everyDatabase('Contact import against upserts', (server) => {
  it('has the same result as upserts of its rows in order', async () => {
    const [single, bulk] = [await createImportScene(server()), await createImportScene(server())]
    const groupIds = { single: await createReferences(single), bulk: await createReferences(bulk) }
    const seen = new Set<string>()
    await fc.assert(
      fc.asyncProperty(fc.array<object>(row, { minLength: 1, maxLength: 12 }), async (rows) => {
        const withGroups = (groups: readonly string[]) =>
          (rows as { group_ids?: number[] }[]).map((r) => ({
            ...r,
            ...(r.group_ids ? { group_ids: r.group_ids.map((n) => groups[n] ?? '999999999') } : {}),
          }))
        const expected = await upsertEach(single, withGroups(groupIds.single))
        assert.deepEqual(await importAll(bulk, withGroups(groupIds.bulk)), expected)
        for (const outcome of expected) seen.add(typeof outcome === 'string' ? outcome : outcome[2][0]![1]!)
        assert.deepEqual(await loadSnapshot(server(), bulk), await loadSnapshot(server(), single))
      }),
      { numRuns: runs(15, 80), examples: [[EVERY_OUTCOME]] },
    )
    for (const outcome of [
      'created',
      'updated',
      'unchanged',
      'invalid_phone',
      'unknown_attribute',
      'unknown_group',
      'unknown_tag',
    ])
      assert.ok(seen.has(outcome), outcome)
  })
})
