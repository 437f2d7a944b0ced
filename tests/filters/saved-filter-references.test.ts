import assert from 'node:assert/strict'
import { it } from 'node:test'
import { everyDatabase } from '../doors.ts'
import { assertRefused, createFilterOfSize, type Json, NAME_IS_X, setUp } from './grammar-fixtures.ts'

everyDatabase('Saved filters within filters', (server) => {
  it('may refer to each other but not to themselves', async () => {
    const { run, call, check } = await setUp(server())
    const save = async (name: string, filter: Json): Promise<string> =>
      (await run('crm_create_saved_filter', { name, filter })).saved_filter.id
    const first = await save('first', NAME_IS_X)
    const second = await save('second', { not: { savedFilter: { eq: first } } })
    const third = await save('third', {
      or: [{ savedFilter: { eq: first } }, { savedFilter: { eq: second } }],
    })
    assert.equal((await check({ savedFilter: { eq: third } })).status, 200)
    for (const id of [first, second, third]) {
      assertRefused(
        await call('crm_update_saved_filter', {
          saved_filter_id: first,
          filter: { and: [NAME_IS_X, { savedFilter: { eq: id } }] },
        }),
        { reason: 'saved_filter_cycle', pointer: '#/filter/and/1/savedFilter/eq' },
      )
    }
    // A cycle that is already stored is detected too.
    await server()
      .db.updateTable('saved_filters')
      .set({ filter: JSON.stringify({ savedFilter: { eq: third } }) })
      .where('id', '=', first)
      .execute()
    assertRefused(await check({ savedFilter: { eq: second } }), {
      reason: 'saved_filter_cycle',
      pointer: '#/filter/savedFilter/eq',
    })
  })

  it('count towards the condition limit with all their conditions', async () => {
    const { run, check } = await setUp(server())
    const save = async (name: string, filter: Json): Promise<string> =>
      (await run('crm_create_saved_filter', { name, filter })).saved_filter.id
    const ten = await save('ten', { and: Array.from({ length: 9 }, () => NAME_IS_X) })
    const createReferences = (times: number, id = ten, more = 0) => ({
      and: [
        ...Array.from({ length: times }, () => ({ savedFilter: { eq: id } })),
        ...Array.from({ length: more }, () => NAME_IS_X),
      ],
    })
    // Each reference is a condition itself: 59 references to nine conditions count 590.
    assert.equal((await check(createReferences(59, ten, 1))).status, 200)
    assert.equal((await check(createReferences(60))).status, 200)
    const eleven = await save('eleven', { and: Array.from({ length: 10 }, () => NAME_IS_X) })
    assertRefused(await check(createReferences(60, eleven)), {
      reason: 'filter_too_many_conditions',
      pointer: '#/filter',
    })
    let last = ten
    for (let n = 0; n < 30; n++)
      last = await save(`chain ${n}`, { not: { not: { savedFilter: { eq: last } } } })
    assert.equal((await check({ savedFilter: { eq: last } })).status, 200)
    for (let n = 0; n < 3; n++)
      last = await save(`more ${n}`, n === 2 ? {} : { not: { savedFilter: { eq: last } } })
    let doubled = ten
    for (let n = 0; n < 5; n++) doubled = await save(`doubled ${n}`, createReferences(2, doubled))
    assertRefused(await check(createReferences(2, doubled)), {
      reason: 'filter_too_many_conditions',
      pointer: '#/filter',
    })
  })

  it('may exceed the size limit by their resolved dates', async () => {
    const { run, check } = await setUp(server())
    const filter = {
      ...createFilterOfSize(16_384 - ',"createdAt":{"gte":"-7d"}'.length),
      createdAt: { gte: '-7d' },
    }
    const { saved_filter: saved } = await run('crm_create_saved_filter', { name: 'long', filter })
    assertRefused(await check(saved.filter), { reason: 'filter_too_large', pointer: '#/filter' })
    assert.equal((await run('crm_count_contacts', { saved_filter_id: saved.id })).count, 0)
    assert.equal(
      (
        await run('crm_update_saved_filter', {
          saved_filter_id: saved.id,
          name: 'longer',
          dry_run: true,
          count: true,
        })
      ).count,
      0,
    )
  })

  it('that are no longer valid are refused by name', async () => {
    const { run, check } = await setUp(server())
    const field = await run('crm_create_custom_field', { key: 'plan', type: 'text' })
    const { saved_filter: saved } = await run('crm_create_saved_filter', {
      name: 'By plan',
      filter: { and: [NAME_IS_X, { attributes: { some: { attributeName: { eq: 'plan' } } } }] },
    })
    await run('crm_delete_custom_field', { custom_field_id: field.id })
    const reply = await check({ or: [NAME_IS_X, { savedFilter: { eq: saved.id } }] })
    assertRefused(reply, { pointer: '#/filter/or/1/savedFilter/eq', code: 'saved_filter_broken' })
    assert.match(reply.body.detail, /"By plan".*#\/and\/1\/attributes\/some\/attributeName\/eq/)
  })
})
