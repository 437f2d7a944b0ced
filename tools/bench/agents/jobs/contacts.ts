import assert from 'node:assert/strict'
import type { Job } from '../job.ts'
import type { World } from '../world.ts'

const countTagged = async (owner: World['owner'], tag: string): Promise<number> =>
  (await owner('crm_count_contacts', { filter: { tags: { some: { name: { eq: tag } } } } })).count

const people = ['Ines Alba', 'Jonas Berg', 'Kaya Çelik', 'Lior Dan', 'Mona Egger'].map((name, i) => ({
  name,
  phone: `+1555010082${i}`,
}))

export const contactJobs: readonly Job[] = [
  {
    name: 'a saved filter, counted and tagged',
    task:
      'How many customers are waiting for an answer (there is a saved filter)? Tag them all "waits", after a ' +
      'rehearsal.',
    run: async (agent) => {
      await agent.learn('saved filters', 'crm_list_saved_filters')
      await agent.learn('count contacts', 'crm_count_contacts')
      const filters = await agent.call('crm_list_saved_filters')
      const saved = filters.data.find(({ name }: any) => name === 'Waiting for an answer')
      const { count } = await agent.call('crm_count_contacts', { saved_filter_id: saved.id })
      const { data } = await agent.call('crm_search_contacts', {
        saved_filter_id: saved.id,
        detail: 'ids',
        limit: 100,
      })
      const change = { contact_ids: data.map(({ id }: any) => id), tags: ['waits'] }
      const rehearsed = await agent.call('crm_tag_contacts', { ...change, dry_run: true })
      await agent.act('crm_tag_contacts', change)
      return { count, rehearsed: rehearsed.succeeded }
    },
    check: async (answer, { owner }) => {
      const count = await countTagged(owner, 'waits')
      assert.ok(count > 0)
      assert.deepEqual(answer, { count, rehearsed: count })
    },
  },
  {
    name: 'import five people into a new group',
    task:
      'Import these five into a new group "Trade fair": ' +
      `${people.map(({ name, phone }) => `${name} ${phone}`).join(', ')}.`,
    phones: true,
    run: async (agent) => {
      await agent.learn('import contacts into a new group', 'crm_import_contacts')
      return await agent.call('crm_import_contacts', {
        rows: people.map((person) => ({ ...person, group_names: ['Trade fair'] })),
        create_missing_groups: true,
      })
    },
    check: async (_, { owner }) => {
      const groups = await owner('crm_list_groups', {})
      assert.equal(groups.data.find(({ name }: any) => name === 'Trade fair').contacts_count, people.length)
    },
  },
  {
    name: 'delete one contact, with consent',
    task: 'Mona Egger asked us to delete her data. Delete her contact; I agree to that.',
    run: async (agent) => {
      await agent.learn('delete a contact', 'crm_delete_contact')
      const { data } = await agent.call('crm_search_contacts', { query: 'Mona Egger' })
      assert.equal(data.length, 1)
      await agent.call('crm_delete_contact', { contact_id: data[0].id, dry_run: true })
      await agent.act('crm_delete_contact', { contact_id: data[0].id })
    },
    check: async (_, { owner }) => {
      assert.equal((await owner('crm_search_contacts', { query: 'Mona Egger' })).data.length, 0)
      assert.equal((await owner('crm_search_contacts', { query: 'Lior Dan' })).data.length, 1)
    },
  },
  {
    name: 'brief on a contact',
    task: 'Who is Kacper Piątek? Which plan, which tags?',
    run: async (agent) => {
      const found = await agent.call('crm_search_contacts', { query: 'Kacper Piątek' })
      const { tags, attributes_map: attributes } = await agent.call('crm_get_contact', {
        contact_id: found.data[0].id,
        detail: 'compact',
      })
      return { tags: tags.map(({ name }: any) => name), plan: attributes.plan }
    },
    check: async (answer, { owner }) => {
      const { data } = await owner('crm_search_contacts', { query: 'Kacper Piątek' })
      const contact = await owner('crm_get_contact', { contact_id: data[0].id })
      assert.deepEqual(answer, {
        tags: contact.tags.map(({ name }: any) => name),
        plan: contact.attributes.find(({ key }: any) => key === 'plan')?.value,
      })
      assert.ok(answer.plan !== undefined && answer.tags.length > 0)
    },
  },
  {
    name: 'count by a condition',
    task: 'How many newsletter contacts have we known for more than a year?',
    run: async (agent) => {
      await agent.learn('count contacts', 'crm_count_contacts')
      const filter = { tags: { some: { name: { eq: 'newsletter' } } }, createdAt: { lt: '-1y' } }
      return (await agent.call('crm_count_contacts', { filter })).count
    },
    check: async (answer, { owner }) => {
      assert.ok(answer > 0)
      const rest = await owner('crm_count_contacts', {
        filter: {
          tags: { some: { name: { eq: 'newsletter' } } },
          createdAt: { gte: '-1y' },
        },
      })
      assert.equal(answer + rest.count, await countTagged(owner, 'newsletter'))
    },
  },
  {
    name: 'change a custom field',
    task: 'Jonas Berg changed to the pro plan: write it into his contact.',
    run: async (agent) => {
      await agent.learn('custom fields', 'crm_list_custom_fields')
      const fields = await agent.call('crm_list_custom_fields', { search: 'plan' })
      const { data } = await agent.call('crm_search_contacts', { query: 'Jonas Berg' })
      const key = fields.data[0].key
      await agent.call('crm_update_contact', { contact_id: data[0].id, attributes: { [key]: 'pro' } })
      return data[0].id
    },
    check: async (answer, { owner }) => {
      const { attributes } = await owner('crm_get_contact', { contact_id: answer })
      assert.equal(attributes.find(({ key }: any) => key === 'plan').value, 'pro')
    },
  },
  {
    name: 'tagged contacts into a group',
    task: 'Put every contact with the tag Großkunde into the group Key accounts.',
    run: async (agent) => {
      const { data } = await agent.call('crm_search_contacts', { tag_ids: ['Großkunde'], detail: 'ids' })
      await agent.learn('add contacts to a group', 'crm_list_groups', 'crm_add_contacts_to_group')
      const groups = await agent.call('crm_list_groups')
      const group = groups.data.find(({ name }: any) => name === 'Key accounts')
      await agent.call('crm_add_contacts_to_group', {
        group_id: group.id,
        contact_ids: data.map(({ id }: any) => id),
      })
      return data.length
    },
    check: async (answer, { owner }) => {
      assert.ok(answer > 0)
      const { count } = await owner('crm_count_contacts', {
        filter: {
          tags: { some: { name: { eq: 'Großkunde' } } },
          groups: { some: { name: { eq: 'Key accounts' } } },
        },
      })
      assert.equal(count, answer)
    },
  },
]
