import assert from 'node:assert/strict'
import { test } from 'node:test'
import { catalog, findOperation, type Operation, type OperationName } from '../../catalog/index.ts'
import { listContactSubjects } from '../../server/visibility/contact-subjects.ts'

const count = (name: string, input: Record<string, unknown>, answer?: unknown): number =>
  Object.values(listContactSubjects(findOperation(name as OperationName)! as Operation, input, answer)).flat()
    .length

/** Operations of which a filter tells nothing: they read no contact. */
const READS_NO_CONTACT = [
  'crm_check_filter',
  'crm_get_saved_filter',
  'crm_track_saved_filter',
  'crm_delete_saved_filter',
]

test('every operation that takes a filter, or names a contact, counts for the budget of an AI agent', () => {
  let counted = 0
  for (const { name, input } of catalog)
    for (const field of Object.keys(input.shape)) {
      const value = /^(?:other_|merged_)?contact_id$/.test(field)
        ? '7'
        : field === 'contact_ids'
          ? ['7']
          : field === 'filter'
            ? { name: { eq: 'Ada' } }
            : field === 'saved_filter_id' && !READS_NO_CONTACT.includes(name)
              ? '3'
              : undefined
      if (value === undefined || (field === 'filter' && READS_NO_CONTACT.includes(name))) continue
      counted++
      assert.ok(count(name, { [field]: value }) > 0, `${name} ${field}`)
      assert.ok(count(name, { [field]: value }, {}) > 0, `${name} ${field}, answered`)
    }
  assert.ok(counted > 30)
})

test('each question by a phone or an external id counts, unless the answer names somebody else', () => {
  const known = { contact: { id: '9', dnd: false } }
  for (const [name, input, unnamed] of [
    ['crm_upsert_contact', { phone: '+15550100042' }, { action: 'created', contact: { id: null } }],
    ['crm_upsert_contact', { external_id: 'C-1' }, { action: 'created', contact: { id: null } }],
    ['crm_change_phone', { contact_id: '7', phone: '+15550100042' }, { contact: { id: '7', dnd: false } }],
    ['crm_update_contact', { contact_id: '7', external_id: 'C-1' }, { contact: { id: '7', dnd: false } }],
    ['crm_get_contact', { external_id: 'C-1' }, undefined],
  ] as const) {
    const ids = 'contact_id' in input ? 1 : 0
    assert.equal(count(name, input, unnamed), ids + 1, name)
    assert.equal(count(name, input), ids + 1, `${name}, refused`)
    assert.equal(count(name, input, known), ids + 1, `${name}, somebody else`)
  }
  const rows = [{ phone: '+15550100042' }, { phone: '+15550100043' }, { external_id: 'C-1' }]
  const results = [
    { row: 0, action: 'updated', id: '9' },
    { row: 1, action: 'created', id: null },
    { row: 2, action: 'failed', id: null },
  ]
  assert.equal(count('crm_import_contacts', { rows }, { results }), 3)
})

test('members that are called like those of every object hold no ids', () => {
  const contact = {
    id: '9',
    dnd: false,
    attributes: { constructor: '12345', valueOf: { id: '7' } },
    target: { type: 'toString', id: '8' },
  }
  assert.equal(count('crm_search_contacts', {}, { data: [contact] }), 1)
})

test('what a change would do to those that match is a question of its own', () => {
  const asks = (input: object) =>
    listContactSubjects(findOperation('crm_update_contacts') as Operation, {
      filter: {},
      all: true,
      ...input,
    }).questions
  const [one, other] = [
    asks({ attributes: { email: 'a@example.com' } }),
    asks({ attributes: { email: 'b@example.com' } }),
  ]
  assert.equal(one.length, 1)
  assert.notDeepEqual(one, other)
})

test('the records that failed in a job count', () => {
  const data = [
    { id: '7', code: 'not_found', message: 'x' },
    { id: '8', code: 'not_found', message: 'x' },
  ]
  assert.equal(count('jobs_list_failures', { job_id: '1' }, { data, next_cursor: null }), 2)
})

test('an event counts by the ids of its type', () => {
  const data = [{ id: 'evt_1', type: 'contact.erased/1', data: { contact: { id: '7' } } }]
  assert.equal(count('events_list', {}, { data }), 1)
})
