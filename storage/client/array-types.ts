import { parse } from 'postgres-array'
import { toIsoTime } from '../values/times.ts'

/*
 * The array types of statements. postgres.js would ask each new connection for all of them, and leave a promise behind
 * when the connection is lost meanwhile. Those of PostgreSQL itself have the same numbers everywhere (pg_type.dat).
 */

type Element = { serialize?: (value: never) => string; parse?: (text: string) => unknown }

const number: Element = { parse: Number }
const time: Element = { parse: toIsoTime }
const json: Element = {
  serialize: (value: unknown) => (typeof value === 'string' ? value : JSON.stringify(value)),
  parse: (text) => JSON.parse(text) as unknown,
}
const bytes: Element = { parse: (text) => Buffer.from(text.slice(2), 'hex') }
const boolean: Element = { parse: (text) => text === 't' }
const asText: Element = {}

/** The number of each array type, with its elements. Times and numbers of 64 bits are texts, as in columns. */
const elements: Readonly<Record<number, Element>> = {
  199: json,
  1000: boolean, // bool
  1001: bytes, // bytea
  1003: asText, // name
  1005: number, // int2
  1007: number, // int4
  1009: asText, // text
  1015: asText, // varchar
  1016: asText, // int8
  1021: number, // float4
  1022: number, // float8
  1028: number, // oid
  1115: time, // timestamp
  1185: time, // timestamptz
  1231: asText, // numeric
  2951: asText, // uuid
  3807: json, // jsonb
}

const escape = (text: string): string => `"${text.replace(/["\\]/g, '\\$&')}"`

/** Returns an array as PostgreSQL reads it; `undefined` in it is null. */
const serializeArray = (values: readonly unknown[], { serialize = String }: Element): string =>
  `{${values
    .map((value) => {
      if (Array.isArray(value)) return serializeArray(value, { serialize })
      return value === null || value === undefined ? 'null' : escape(serialize(value as never))
    })
    .join(',')}}`

/** As the option `types` of postgres.js takes them. */
export const arrayTypes = Object.fromEntries(
  Object.entries(elements).map(([oid, element]) => [
    `array_${oid}`,
    {
      to: Number(oid),
      from: [Number(oid)],
      serialize: (value: unknown) =>
        Array.isArray(value) ? serializeArray(value as unknown[], element) : (value as string),
      parse: (text: string): unknown => (element.parse ? parse(text, element.parse) : parse(text)),
    },
  ]),
)
