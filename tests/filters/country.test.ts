import assert from 'node:assert/strict'
import { it } from 'node:test'
import { type CountryCode, getCountryCallingCode, parsePhoneNumberFromString } from 'libphonenumber-js'
import examples from 'libphonenumber-js/mobile/examples'
import { doAs } from '../calls.ts'
import { everyDatabase } from '../doors.ts'
import { makeWorkspace } from '../servers.ts'
import { insertContacts } from './insert-contacts.ts'

everyDatabase('Contact filters: country', (server) => {
  it('a phone is of the country that the phone library says', async () => {
    const { id, owner } = await makeWorkspace(server())
    const phones = new Map(
      Object.entries(examples).map(([country, number]) => {
        const phone = `${getCountryCallingCode(country as CountryCode)}${String(number)}`
        return [phone, parsePhoneNumberFromString(`+${phone}`)?.country] as const
      }),
    )
    // A satellite phone, and no phone.
    const all = [...phones.keys(), '8816123456789', null]
    const rows = all.map((phone) => ({
      name: null,
      phone,
      dnd: false,
      starred: false,
      created_at: 0,
      updated_at: 0,
      last_activity_at: null,
      attrs: {},
      tagIds: [],
      groupIds: [],
      conversations: [],
      recipients: [],
    }))
    await insertContacts(server().db, id, new Map(), rows)
    const run = doAs(server(), owner.key)
    const list = async (test: object): Promise<string[]> => {
      const { data } = await run('crm_search_contacts', { filter: { country: test }, limit: 100 })
      return data.map(({ phone }: { phone: string | null }) => phone ?? '').toSorted()
    }
    const byCountry = Map.groupBy(phones.keys(), (phone) => phones.get(phone)!)
    assert.ok(byCountry.size > 200)
    for (const [country, found] of byCountry)
      assert.deepEqual(await list({ eq: country }), found.toSorted(), country)
    assert.deepEqual(await list({ isNull: true }), ['', '8816123456789'])
    const count = async (test: object): Promise<number> =>
      (await run('crm_count_contacts', { filter: { country: test } })).count
    assert.equal(await count({ isNull: false }), phones.size)
    assert.equal(await count({ notIn: ['US', 'CA', 'DE'] }), phones.size - 3)
  })
})
