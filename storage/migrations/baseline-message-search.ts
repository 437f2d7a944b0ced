/** Scripts that have capital letters, the most frequent in long messages first: `translate` looks from the front. */
const ranges: readonly (readonly [number, number])[] = [
  [0x410, 0x42f],
  [0x391, 0x3a9],
  [0x400, 0x40f],
  [0xc0, 0x24f],
  [0x460, 0x52f],
  [0x531, 0x556],
]

/** Letters that have no decomposition into a base letter and an accent, but are typed without the stroke. */
const strokes = { Ł: 'l', ł: 'l', Ø: 'o', ø: 'o', Đ: 'd', đ: 'd', ı: 'i', ς: 'σ' }

/** The capital letters that `normalize` leaves, and the small ones of the same places. */
const listCapitals = (): [from: string, to: string] => {
  const pairs = ranges.flatMap(([first, last]) =>
    Array.from({ length: last - first + 1 }, (_, n) => String.fromCodePoint(first + n))
      .filter((letter) => letter.normalize('NFKD') === letter && !Object.hasOwn(strokes, letter))
      .map((letter) => [letter, letter.toLowerCase()] as const)
      .filter(([letter, small]) => small !== letter && small.length === 1),
  )
  const all = [...pairs, ...Object.entries(strokes)]
  return [all.map(([from]) => from).join(''), all.map(([, to]) => to).join('')]
}

/** Accents, and vowel signs of Hebrew and Arabic; zero-width characters, which stand within words. */
const MARKS =
  '[\\u0300-\\u036f\\u0591-\\u05c7\\u0640\\u064b-\\u065f\\u0670\\u3099\\u309a\\ufe00-\\ufe0f\\u200b-\\u200f\\u00ad]'
/** Scripts without spaces between words (Thai, Lao, Burmese, Khmer, Japanese, Chinese): each character is a word. */
const UNSPACED =
  '[\\u0e00-\\u0eff\\u1000-\\u109f\\u1780-\\u17ff\\u3041-\\u30ff\\u3400-\\u9fff\\uf900-\\ufaff]'
/** What is between words: ASCII but for letters and digits, punctuation, symbols, arrows, emoji. */
const BETWEEN =
  '[\\u0001-\\u002f\\u003a-\\u0040\\u005b-\\u0060\\u007b-\\u00bf\\u00d7\\u00f7\\u055a-\\u055f' +
  '\\u060c\\u061b\\u061f\\u066a-\\u066d\\u06d4\\u0964\\u0965\\u2000-\\u206f\\u20a0-\\u20cf' +
  '\\u2190-\\u2bff\\u3000-\\u303f\\ufe30-\\ufe4f\\U0001f000-\\U0001faff]+'

const [capitals, small] = listCapitals()

/** The languages of Latin letters whose stop words PostgreSQL has: it tells them apart by these. */
const latin = `{${['english', 'spanish', 'portuguese', 'french', 'german', 'italian', 'dutch', 'turkish']
  .map((language) => `${language}_stem`)
  .join()}}`
/** Code points of other letters for which PostgreSQL has a dictionary. */
const scripts = [
  [0x370, 0x3ff, 'greek'],
  [0x400, 0x52f, 'russian'],
  [0x530, 0x58f, 'armenian'],
  [0x600, 0x6ff, 'arabic'],
  [0x900, 0x97f, 'hindi'],
  [0xb80, 0xbff, 'tamil'],
] as const
const PAIR_BUCKETS = 262_144

/**
 * Decomposed in pieces of so many characters: PostgreSQL sorts the combining marks of a text one by one, in time that
 * grows with the square of those in a row; ten thousands took seconds. Words with marks out of order at the end of a
 * piece are not found.
 */
const PIECE = 200

/** Members of the content of a message that are searched beside its text. */
const SEARCHED = [
  ...['payload', 'row_id', 'name', 'catalog_id', 'url', 'latitude', 'longitude'].map(
    (member) => `content,${member}`,
  ),
  ...['ad_id', 'headline', 'text', 'url', 'click_id'].map((member) => `ad,${member}`),
  'product,catalog_id',
  'product,product_id',
]

/** Full-text search in messages. docs/decisions/0055-search-in-messages.md says why it is so. */
export const messageSearch = `
  create function message_decompose(body text) returns text
    language sql immutable strict parallel safe as $$
    select case when length(body) <= ${PIECE} then normalize(body, NFKD) else (
      select string_agg(normalize(substr(body, i, ${PIECE}), NFKD), '' order by i)
      from generate_series(1, length(body), ${PIECE}) as i) end
  $$;
  -- The words of a text in order, each between spaces, without case and accents. Not by lower() or a text search
  -- parser, which depend on the locale of the database: the embedded one has another. ASCII takes a short way.
  create function message_words(body text) returns text
    language plpgsql immutable strict parallel safe cost 1000 as $$
  declare words text := left(body, 20000) collate "C";
  begin
    if octet_length(words) = length(words) then
      return ' ' || btrim(regexp_replace(lower(words collate "C"), '[^a-z0-9]+' collate "C", ' ', 'g')) || ' ';
    end if;
    words := lower(message_decompose(words) collate "C");
    words := replace(translate(words, '${capitals}', '${small}'), 'ß', 'ss');
    words := regexp_replace(words collate "C", '${MARKS}', '', 'g');
    words := regexp_replace(words collate "C", '(${UNSPACED})', ' \\1 ', 'g');
    return ' ' || btrim(regexp_replace(words collate "C", '${BETWEEN}', ' ', 'g')) || ' ';
  end $$;
  -- The language of a text: the one with the most of its stop words among the first 50 words; English when there is
  -- none. What is written with other letters needs no guess (message_stem).
  create function message_language(words text[]) returns regdictionary
    language sql stable parallel safe as $$
    select coalesce((
      select u.dictionary from unnest('${latin}'::regdictionary[]) with ordinality as u (dictionary, n)
        cross join unnest(words[1:50]) as word
      where length(word) <= 5 and ts_lexize(u.dictionary, word) = '{}'
      group by u.dictionary, u.n order by count(*) desc, u.n limit 1), 'english_stem')
  $$;
  create function message_stem(word text, latin regdictionary) returns text
    language plpgsql stable parallel safe as $$
  declare
    letter int := ascii(word);
    dictionary regdictionary := case when letter < 592 then latin ${scripts
      .map(([first, last, language]) => `when letter between ${first} and ${last} then '${language}_stem'`)
      .join(' ')} end;
  begin
    return coalesce((ts_lexize(dictionary, word))[1], word);
  end $$;
  -- What a word may be found by: itself, and its stem in each language, as nobody knows the language of a query.
  create function message_word_forms(word text) returns text[]
    language sql stable parallel safe as $$
    select array(select word union select message_stem(word, latin)
      from unnest('${latin}'::regdictionary[]) as latin)
  $$;
  -- What a text is found by: its words and their stems in its language.
  create function message_lexemes(body text) returns text[]
    language plpgsql stable parallel safe as $$
  declare
    words text[] := string_to_array(btrim(message_words(body)), ' ');
    latin regdictionary := message_language(words);
  begin
    return array(select word from unnest(words) as word
      union select message_stem(word, latin) from unnest(words) as word);
  end $$;
  create function message_hash(word text) returns integer
    language sql immutable parallel safe return
    ((hashtextextended(word collate "C", 0) & 4294967295) - 2147483648)::integer;
  -- Two words that follow each other share ${PAIR_BUCKETS} keys: one for each pair made the index six times as large.
  create function message_pair_hash(pair text) returns integer
    language sql immutable parallel safe return
    (hashtextextended(pair collate "C", 1) & ${PAIR_BUCKETS - 1})::integer;
  -- Is mixed into the keys of a workspace and a month (in UTC), so that the matches of a month are found without those
  -- of others. storage/messages/search-terms.ts computes the same.
  create function message_salt(workspace bigint, at timestamptz) returns integer
    language sql immutable parallel safe return
    ((((workspace % 100000) * 30000 + (extract(year from at at time zone 'UTC') * 12
      + extract(month from at at time zone 'UTC'))::bigint) * 2654435761 & 4294967295) - 2147483648)::integer;
  -- The keys of a message, without the salt: its words and stems, pairs of words, channel, author and direction.
  create function message_keys(body text, channel bigint, staff bigint, kind text) returns integer[]
    language plpgsql stable parallel safe as $$
  declare
    words text[] := string_to_array(btrim(message_words(body)), ' ');
    latin regdictionary := message_language(words);
  begin
    return array(
      select message_hash(word) from unnest(words) as word
      union select message_hash(message_stem(word, latin)) from unnest(words) as word
      union select message_pair_hash(a || ' ' || b) from unnest(words, words[2:]) as u (a, b) where b is not null
      union select message_hash('#c' || channel) where channel is not null
      union select message_hash('#s' || staff) where staff is not null
      union select message_hash('#' || kind));
  end $$;
  -- What of a message is searched: its text, and what the customer sent that the text does not say.
  create function message_searched(m messages) returns text
    language sql immutable parallel safe return
    case when m.content is null then m.text else concat_ws(e'\\n', m.text, ${SEARCHED.map(
      (path) => `m.content #>> '{${path}}'`,
    ).join(', ')}) end;
  -- keys is empty for what is not found: without a text, deleted, written by the service.
  create table message_search (
    workspace_id bigint not null, message_id bigint not null, created_at timestamptz(3) not null,
    salt integer not null, keys integer[] not null, primary key (workspace_id, message_id)
  ) with (autovacuum_vacuum_insert_scale_factor = 0.02);
  create function message_search_row(m messages) returns message_search
    language plpgsql stable as $$
  declare salt integer := message_salt(m.workspace_id, m.created_at);
  begin
    return row(m.workspace_id, m.id, m.created_at, salt,
      case when m.text is null or m.deleted_at is not null or (m.direction = 'system' and not m.note) then '{}'
      else array(select key # salt from unnest(message_keys(message_searched(m), m.channel_id, m.staff_id,
        case when m.note then 'note' else m.direction end)) as key) end)::message_search;
  end $$;
  create index message_search_newest on message_search (workspace_id, created_at desc, message_id desc)
    where keys <> '{}';
  create index message_search_keys on message_search using gin (keys) with (gin_pending_list_limit = 512);
  -- The ids up to indexed_to are indexed.
  create table message_search_progress (
    only_row boolean primary key default true check (only_row), indexed_to bigint not null
  );
  insert into message_search_progress (indexed_to) values (0);
  -- New messages cost nothing here; what changes or goes is taken out of the index at once. A deleted message leaves
  -- an empty row where it was not indexed yet: the index may be reading it.
  create function renew_message_search() returns trigger language plpgsql as $$
  begin
    if tg_op = 'DELETE' then
      delete from message_search where workspace_id = old.workspace_id and message_id = old.id;
      if not found then
        insert into message_search values (old.workspace_id, old.id, old.created_at, 0, '{}')
          on conflict (workspace_id, message_id) do update set keys = '{}';
      end if;
    else
      insert into message_search select r.* from message_search_row(new) as r
        on conflict (workspace_id, message_id) do update set keys = excluded.keys;
    end if;
    return null;
  end $$;
  create trigger messages_search_changed after update of text, deleted_at on messages for each row
    when (old.text is distinct from new.text or old.deleted_at is distinct from new.deleted_at)
    execute function renew_message_search();
  create trigger messages_search_deleted after delete on messages for each row
    execute function renew_message_search();
`
