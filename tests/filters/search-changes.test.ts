import assert from 'node:assert/strict'
import { it } from 'node:test'
import fc from 'fast-check'
import { type ContactsPage, doAs, everyPage } from '../calls.ts'
import { everyDatabase } from '../doors.ts'
import { runs } from '../level.ts'
import { arbitraryFilter } from './arbitraries.ts'
import { loadModelContacts } from './load-contacts.ts'
import type { JsonObject } from './model.ts'
import { SEEDED_NOW } from './sample-values.ts'
import { arbitrarySort, findExpectedIds, toIds } from './search-model.ts'
import { seedEdgeCases } from './seed.ts'

everyDatabase(
  'Contact search during changes',
  (server) => {
    it('finds changes at once: created, changed, tagged and deleted contacts', async () => {
      const seed = await seedEdgeCases(server(), 60)
      const { workspace, contacts } = seed
      const run = doAs(server(), workspace.owner.key)
      const select = (n: number) => ['red', 'SS', null][n % 3]
      const number = (n: number) => [1, 2.5, null][n % 3]
      for (const [n, contact] of contacts.entries()) {
        if (n % 4 === 0) await run('crm_delete_contact', { contact_id: contact.id })
        else if (n % 4 === 1) {
          await run('crm_update_contact', {
            contact_id: contact.id,
            name: n % 8 === 1 ? null : `Straße ${n}`,
            starred: n % 8 === 1,
            email: n % 3 === 0 ? null : 'new@example.com',
            attributes: {
              f_select: select(n),
              f_multiselect: n % 8 === 1 ? ['ß', 'red'] : null,
              f_number: number(n),
              f_text: `neu ${n}`,
              f_date: '2026-03-09',
              f_boolean: n % 3 === 0,
            },
          })
        } else if (n % 4 === 2)
          await run('crm_tag_contacts', { contact_ids: [contact.id], tags: ['Neu', '100%'] })
        else
          await run('crm_upsert_contact', {
            phone: `+1555777${String(n).padStart(4, '0')}`,
            name: `Ada ${n}`,
            attributes: { f_text: 'Pro', f_decimal: '12.5', f_multiselect: ['gr%en'] },
            tags: ['VIP'],
          })
      }
      const changed = { ...seed, contacts: await loadModelContacts(server().db, workspace.id) }
      assert.notDeepEqual(toIds(changed.contacts), toIds(contacts))
      await fc.assert(
        fc.asyncProperty(arbitraryFilter(changed), arbitrarySort, async (filter, sort) => {
          const page: ContactsPage = await run('crm_search_contacts', { filter, sort, limit: 100 })
          assert.deepEqual(toIds(page.data), findExpectedIds(changed, { filter, sort }))
        }),
        { numRuns: runs(12, 300) },
      )
    })

    it('pages list unchanged contacts exactly once while others change', async () => {
      const changes = fc.array(fc.nat(), { minLength: 1, maxLength: 5 })
      const limits = fc.array(fc.integer({ min: 2, max: 15 }), { minLength: 1, maxLength: 3 })
      let createdCount = 0
      await fc.assert(
        fc.asyncProperty(fc.gen(), arbitrarySort, limits, changes, async (draw, sort, sizes, picks) => {
          const seed = await seedEdgeCases(server(), 40)
          const run = doAs(server(), seed.workspace.owner.key)
          // Often all contacts, so that there are pages between which to make changes.
          const filter = draw(() =>
            fc.oneof(
              fc.constant<JsonObject>({ name: { ne: 'nobody' } }),
              fc.constant<JsonObject>({ tags: { none: { name: { eq: 'empty' } } } }),
              arbitraryFilter(seed),
            ),
          )
          const touched = new Set<string>()
          const pages = await everyPage(run, 'crm_search_contacts', { filter, sort }, sizes, async (page) => {
            const pick = picks[page % picks.length]!
            const target = seed.contacts[pick % seed.contacts.length]!
            if (touched.has(target.id)) return
            touched.add(target.id)
            if (pick % 3 === 0) await run('crm_delete_contact', { contact_id: target.id })
            else if (pick % 3 === 1)
              await run('crm_update_contact', {
                contact_id: target.id,
                name: pick % 2 === 0 ? null : 'Ada',
                starred: pick % 2 === 0,
                attributes: { f_text: 'Pro' },
              })
            else
              await run('crm_upsert_contact', {
                phone: `+1555888${String(createdCount++).padStart(4, '0')}`,
                name: 'Ada',
                tags: ['VIP'],
              })
          })
          const listedIds = pages.flatMap((page) => toIds(page.data))
          const seededIds = new Set(toIds(seed.contacts))
          assert.deepEqual(
            listedIds.filter((id) => seededIds.has(id) && !touched.has(id)),
            findExpectedIds(seed, { filter, sort }).filter((id) => !touched.has(id)),
          )
          // A contact whose sort key changes may be listed again at its new position.
          if (!['updatedAt', 'name'].includes(sort.field))
            assert.equal(new Set(listedIds).size, listedIds.length)
        }),
        { numRuns: runs(2, 24) },
      )
    })
  },
  { now: () => SEEDED_NOW },
)
