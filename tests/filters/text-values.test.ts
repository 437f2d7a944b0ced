import assert from 'node:assert/strict'
import { it } from 'node:test'
import { doAs } from '../calls.ts'
import { everyDatabase } from '../doors.ts'
import { makeWorkspace } from '../servers.ts'
import { type Json, setUp } from './grammar-fixtures.ts'

everyDatabase('Filters on phone numbers', (server) => {
  it('compare phone numbers as their stored digits', async () => {
    const { run } = await setUp(server())
    await run('crm_create_custom_field', { key: 'mobile', type: 'phone' })
    await run('crm_upsert_contact', {
      phone: '+49 170 1234567',
      name: 'Ada',
      attributes: { mobile: '+1 555 010 0042' },
    })
    const countMatches = async (filter: Json) => (await run('crm_search_contacts', { filter })).data.length
    for (const value of ['+49 170 1234567', '491701234567', '0049 (170) 123-45-67'])
      assert.equal(await countMatches({ phoneNumber: { eq: value } }), 1, value)
    for (const test of [
      { in: ['+1 555', '+49 170 1234567'] },
      { startsWith: '+49 170' },
      { contains: '170-123' },
      { endsWith: '45 67' },
      { notContains: '+1 555' },
    ])
      assert.equal(await countMatches({ phoneNumber: test }), 1, JSON.stringify(test))
    assert.equal(await countMatches({ phoneNumber: { ne: '+49 170 1234567' } }), 0)
    assert.equal(
      await countMatches({
        attributes: { some: { attributeName: { eq: 'mobile' }, stringValue: { eq: '+1 (555) 010-0042' } } },
      }),
      1,
    )
  })
})

everyDatabase('Filters on option fields', (server) => {
  it('match option values with every text operator', async () => {
    const workspace = await makeWorkspace(server())
    const run = doAs(server(), workspace.owner.key)
    const options = [
      { label: 'With care', value: 'with care' },
      { label: 'Plain', value: 'plain' },
    ]
    const attributes = { select: 'with care', radio: 'with care', multiselect: ['plain', 'with care'] }
    for (const type of Object.keys(attributes))
      await run('crm_create_custom_field', { key: type, type, options })
    const { id } = await run('crm_upsert_contact', { phone: '+15550100042', attributes })
    for (const type of Object.keys(attributes)) {
      for (const test of [
        { regex: '^with care$' },
        { regex: 'ith.car' },
        { contains: 'WITH' },
        { startsWith: 'with c' },
        { endsWith: 'care' },
        { eq: 'with care' },
      ]) {
        const { data } = await run('crm_search_contacts', {
          filter: { attributes: { some: { attributeName: { eq: type }, stringValue: test } } },
        })
        assert.deepEqual(
          data.map((contact: { id: string }) => contact.id),
          [id],
          `${type} ${JSON.stringify(test)}`,
        )
      }
    }
  })
})
