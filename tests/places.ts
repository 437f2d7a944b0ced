import { randomUUID } from 'node:crypto'
import { cpSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import postgres from 'postgres'
import { type Location, openStorage, type Storage } from '../storage/open.ts'

/** Where the data of a server process is: its folder or its database, and the flags that name it. */
export type Place = { location: Location; flags: string[]; remove: () => Promise<void> }

const embeddedPlace = async (): Promise<Place> => {
  const dataDir = mkdtempSync(join(tmpdir(), 'wcrm-crash-'))
  if (process.env.WCRM_TEST_TEMPLATE) cpSync(process.env.WCRM_TEST_TEMPLATE, dataDir, { recursive: true })
  return {
    location: { dataDir },
    flags: ['--data', dataDir],
    remove: async () => rmSync(dataDir, { recursive: true, force: true }),
  }
}

const postgresPlace = async (): Promise<Place> => {
  const url = new URL(process.env.WCRM_TEST_POSTGRES_URL!)
  const name = `wcrm_${randomUUID().replaceAll('-', '')}`
  const admin = postgres(url.href, { max: 1, onnotice: () => {} })
  await admin.unsafe(`create database ${name}`)
  url.pathname = `/${name}`
  const dataDir = mkdtempSync(join(tmpdir(), 'wcrm-crash-'))
  return {
    location: { databaseUrl: url.href },
    flags: ['--database-url', url.href, '--data', dataDir],
    remove: async () => {
      await admin.unsafe(`drop database ${name} with (force)`)
      await admin.end()
      rmSync(dataDir, { recursive: true, force: true })
    },
  }
}

/** Opens the data while no process has it. */
export const using = async <T>(location: Location, work: (storage: Storage) => Promise<T>): Promise<T> => {
  const storage = await openStorage(location)
  try {
    return await work(storage)
  } finally {
    await storage.close()
  }
}

export const newPlace = (database: string): Promise<Place> =>
  database === 'embedded' ? embeddedPlace() : postgresPlace()
