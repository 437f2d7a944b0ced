import assert from 'node:assert/strict'
import {
  chmodSync,
  cpSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { createFolderStore } from '../../server/domains/media/folder-store.ts'
import { runAdmin } from '../admin/admin-commands.ts'
import { createDatabase, type TestDatabase } from '../databases.ts'

const listTree = (folder: string): string[] => [
  folder,
  ...readdirSync(folder, { recursive: true }).map((name) => join(folder, String(name))),
]
/** The entries that others may read, list or write. */
const listOpen = (folder: string): string[] =>
  listTree(folder).filter((path) => (lstatSync(path).mode & 0o077) !== 0)

const openToAll = (folder: string): void => {
  for (const path of listTree(folder)) chmodSync(path, lstatSync(path).isDirectory() ? 0o755 : 0o644)
}

describe('Files that were there before', () => {
  let database: TestDatabase
  let folder: string
  before(async () => {
    database = await createDatabase('embedded')
    folder = database.flags[1]!
    writeFileSync(join(folder, 'secret'), 'a secret of at least sixteen\n')
    mkdirSync(join(folder, 'media', '1'), { recursive: true })
    writeFileSync(join(folder, 'media', '1', '2'), 'a picture')
  })
  after(() => database.remove())

  it('become private in a data folder, with a warning', async () => {
    openToAll(folder)
    const { exit, err } = await runAdmin('workspaces', 'list', '--data', folder)
    assert.equal(exit, 0, err)
    assert.deepEqual(listOpen(folder), [])
    for (const name of ['', '/secret', '/pgdata', '/media'])
      assert.match(err, new RegExp(`^Warning: ${folder}${name} was open to other users`, 'm'))
  })

  it('stay as they are where they are not ours', async () => {
    const home = mkdtempSync(join(tmpdir(), 'wcrm-home-'))
    try {
      cpSync(folder, home, { recursive: true })
      mkdirSync(join(home, 'bin'))
      writeFileSync(join(home, 'bin', 'tool'), '#!/bin/sh\n')
      openToAll(home)
      chmodSync(join(home, 'bin', 'tool'), 0o755)
      const { exit, err } = await runAdmin('workspaces', 'list', '--data', home)
      assert.equal(exit, 0, err)
      assert.match(err, new RegExp(`^Warning: ${home} is open to other users`, 'm'))
      assert.deepEqual(listOpen(home).sort(), [home, join(home, 'bin'), join(home, 'bin', 'tool')])
      assert.equal(lstatSync(join(home, 'bin', 'tool')).mode & 0o777, 0o755)
    } finally {
      rmSync(home, { recursive: true })
    }
  })

  it('become private in a media folder, with a warning', () => {
    const media = join(folder, 'media')
    openToAll(media)
    const warnings: string[] = []
    createFolderStore(media, { warn: (message) => warnings.push(message) })
    assert.deepEqual(listOpen(media), [])
    assert.equal(warnings.length, 1)
  })
})
